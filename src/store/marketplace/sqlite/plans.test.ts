import Database from 'better-sqlite3';
import { readMigrations } from '../../migrations.ts';
import { marketplaceTables } from '../../schema/marketplace.ts';
import { sqlite } from '../../schema/sqlite.ts';
import { toConnection } from '../../sqlite/connection.ts';
import { type Access, describePlans } from '../plans.suite.ts';
import { transactionOn } from '../queries/repositories.ts';

const tables = marketplaceTables(sqlite);

function openDatabase(): Database.Database {
  const db = new Database(':memory:');
  for (const { sql } of readMigrations('marketplace-sqlite')) db.exec(sql);
  return db;
}

const database = openDatabase();

describePlans('SQLite', {
  accessesOf: async (ask) => {
    const prepare = database.prepare.bind(database);
    const sources: string[] = [];
    const recording = Object.assign(Object.create(database) as Database.Database, {
      prepare: (source: string) => {
        sources.push(source);
        return prepare(source);
      },
    });
    await ask(transactionOn(toConnection(recording, tables)));
    return sources.map((sql) => ({
      sql,
      accesses: (prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...nulls(sql)) as { detail: string }[]).flatMap(
        ({ detail }) => toAccess(detail),
      ),
    }));
  },
  partialIndexes: async () => {
    const names = database
      .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql LIKE '% WHERE %'")
      .pluck()
      .all();
    return new Set(names);
  },
});

/** A null for each placeholder. */
function nulls(sql: string): null[] {
  return Array.from(sql.matchAll(/\?/g), () => null);
}

/** Parses lines such as `SEARCH deployments USING INDEX deployments_by_team (team_id=?)` and `SCAN mails`. */
function toAccess(detail: string): Access[] {
  const [, how, table = '', using] = /^(SCAN|SEARCH) (\w+)(?: USING (.*))?$/.exec(detail) ?? [];
  if (how === undefined) return [];
  const index = /INDEX (\w+)/.exec(using ?? '')?.[1] ?? null;
  return [{ table, index: using === undefined ? null : (index ?? using), isWholeIndex: how === 'SCAN' }];
}
