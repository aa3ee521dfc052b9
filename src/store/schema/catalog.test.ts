import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { readMigrations } from '../migrations.ts';
import { type Catalog, describeCatalog } from './catalog.suite.ts';
import { sqlite } from './sqlite.ts';

interface Column {
  name: string;
  type: string;
  notnull: number;
  pk: number;
  dflt_value: string | null;
}

interface Index {
  name: string;
  unique: 0 | 1;
  origin: 'c' | 'u' | 'pk';
}

/** Removes the quotes and the table from identifiers. */
function plain(sql: string, table: string): string {
  return sql.replaceAll(/["`]/g, '').replaceAll(`${table}.`, '').replaceAll(/\s+/g, ' ').trim();
}

function checksOf(sql: string, table: string): string[] {
  const checks = plain(sql, table).matchAll(/CHECK ?\(([^()]*)\)/gi);
  return [...checks].map(([, condition = '']) => condition.trim()).sort();
}

function catalogOf(db: Database.Database): Catalog {
  const names = db
    .prepare<[], { name: string; sql: string }>(
      "SELECT name, sql FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    )
    .all();
  return Object.fromEntries(
    names.map(({ name, sql }) => {
      const columns = db.pragma(`table_info(${name})`) as Column[];
      const references = db.pragma(`foreign_key_list(${name})`) as Record<'from' | 'table' | 'to', string>[];
      const indexes = (db.pragma(`index_list(${name})`) as Index[]).filter(({ origin }) => origin !== 'pk');
      return [
        name,
        {
          columns: columns
            .map((column) => [
              column.name,
              column.type.toUpperCase(),
              column.notnull + column.pk > 0,
              column.pk,
              column.dflt_value,
            ])
            .sort(),
          references: references.map(({ from, table, to }) => `${from} -> ${table}.${to}`).sort(),
          indexes: indexes.map((index) => describeIndex(db, index, name)).sort(),
          checks: checksOf(sql, name),
        },
      ];
    }),
  );
}

/** The index of a UNIQUE column has no name of its own. */
function describeIndex(db: Database.Database, { name, unique }: Index, table: string): string {
  const columns = (db.pragma(`index_info(${name})`) as Column[]).map((column) => column.name).join(', ');
  const sql = db
    .prepare<[string], string | null>('SELECT sql FROM sqlite_schema WHERE name = ?')
    .pluck()
    .get(name);
  const where = / WHERE (.*)$/i.exec(plain(sql ?? '', table))?.[1];
  if (where === undefined && unique === 1) return `unique (${columns})`;
  return `${name} ${unique} (${columns}) ${where ?? ''}`;
}

function open(statements: readonly string[]): Database.Database {
  const db = new Database(':memory:');
  for (const statement of statements) db.exec(statement);
  return db;
}

for (const database of ['sqlite', 'marketplace-sqlite'] as const) {
  const migrations = () => readMigrations(database).map(({ sql }) => sql);
  describeCatalog(database, {
    dialect: sqlite,
    migrated: async (change = '') => catalogOf(open([...migrations(), change])),
    made: async (statements) => catalogOf(open(statements)),
  });

  it(`every table of ${database} is STRICT`, () => {
    const loose = open(migrations())
      .prepare(
        "SELECT name FROM pragma_table_list WHERE type = 'table' AND strict = 0 AND name NOT LIKE 'sqlite_%'",
      )
      .pluck();
    expect(loose.all()).toEqual([]);
  });
}
