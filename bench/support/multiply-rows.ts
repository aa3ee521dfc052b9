import Database from 'better-sqlite3';
import { Client } from 'pg';
import { isPostgres, sqlitePath } from '../../src/config/server-schema.ts';

export interface Copies {
  table: string;
  /** The SQL condition of the row to copy. */
  where: string;
  count: number;
  /** Columns that differ, as SQL for both databases. `number` counts the copies from 1. */
  change: Record<string, string>;
}

/** An id of the usual length, as SQL. */
export function numbered(prefix: string): string {
  return `'${prefix}-' || '0000000000000000000000' || CAST(1000000000 + number AS TEXT)`;
}

/**
 * Copies rows without the store, in one transaction: writing a million through it takes longer than the measurement. No
 * server may use the database meanwhile.
 */
export async function multiplyRows(database: string, all: readonly Copies[]): Promise<void> {
  if (isPostgres(database)) await multiplyInPostgres(database, all);
  else multiplyInSqlite(sqlitePath(database), all);
}

function multiplyInSqlite(path: string, all: readonly Copies[]): void {
  const db = new Database(path);
  try {
    db.pragma('synchronous = OFF');
    db.transaction(() => {
      for (const { count, ...copies } of all) {
        const columns = db
          .prepare<[string], string>('SELECT name FROM pragma_table_info(?)')
          .pluck()
          .all(copies.table);
        db.prepare(
          `WITH RECURSIVE numbers(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers WHERE number < ?)
          ${insertion({ ...copies, columns })}`,
        ).run(count);
      }
    })();
    db.pragma('wal_checkpoint(TRUNCATE)');
  } finally {
    db.close();
  }
}

async function multiplyInPostgres(url: string, all: readonly Copies[]): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query('BEGIN');
    for (const { count, ...copies } of all) {
      const { rows } = await client.query<{ name: string }>(
        'SELECT attname AS name FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped',
        [copies.table],
      );
      const columns = rows.map(({ name }) => name);
      await client.query(
        `WITH numbers(number) AS (SELECT generate_series(1, ${Math.trunc(count)})) ${insertion({ ...copies, columns })}`,
      );
    }
    await client.query('COMMIT');
    await client.query('VACUUM ANALYZE');
  } finally {
    await client.end();
  }
}

function insertion({
  table,
  where,
  change,
  columns,
}: Omit<Copies, 'count'> & { columns: readonly string[] }): string {
  const quoted = columns.map((name) => `"${name}"`);
  const values = columns.map((name, index) => change[name] ?? quoted[index]);
  // Without the condition on the number, SQLite parses the following text as a clause of the INSERT.
  return `INSERT INTO ${table} (${quoted.join(', ')}) SELECT ${values.join(', ')} FROM numbers, (SELECT * FROM ${table} WHERE ${where}) AS original WHERE number > 0`;
}
