import { Client } from 'pg';
import { afterAll, beforeAll, describe } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../test/support/databases/postgres.ts';
import { marketplaceFormat, orchestratorFormat } from '../postgres/database-format.ts';
import { prepareDatabase } from '../postgres/open-database.ts';
import { type Catalog, describeCatalog } from './catalog.suite.ts';
import { postgres } from './postgres.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

/**
 * One row for each column, constraint and index. The database chooses the names of primary keys and references. drizzle
 * cannot express that a reference is checked at the end of a transaction.
 */
const CATALOG = `
  SELECT relname AS "table", attname || ' ' || format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN ' NOT NULL' ELSE '' END
    || coalesce(' DEFAULT ' || pg_get_expr(adbin, adrelid), '') AS part
  FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
  WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND attnum > 0 AND NOT attisdropped
  UNION ALL
  SELECT relname, CASE WHEN contype IN ('u', 'c') THEN conname || ' ' ELSE '' END
    || replace(pg_get_constraintdef(pg_constraint.oid), ' DEFERRABLE INITIALLY DEFERRED', '')
  FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
  WHERE contype IN ('p', 'u', 'f', 'c') AND relnamespace = 'public'::regnamespace
  UNION ALL
  SELECT tablename, indexdef FROM pg_indexes
  WHERE schemaname = 'public' AND indexname NOT IN (SELECT conname FROM pg_constraint WHERE contype IN ('p', 'u'))
  ORDER BY 1, 2`;

/** The catalog of the database after `change`, which is rolled back. */
async function catalogAfter(url: string, change: string): Promise<Catalog> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(`BEGIN; ${change}`);
  const { rows } = await client.query<{ table: string; part: string }>(CATALOG);
  await client.end();
  const byTable = Object.groupBy(rows, ({ table }) => table);
  return Object.fromEntries(
    Object.entries(byTable).map(([table, parts = []]) => [table, parts.map(({ part }) => part)]),
  );
}

describe.each([
  ['orchestrator' as const, orchestratorFormat],
  ['marketplace' as const, marketplaceFormat],
])('%s', (program, format) => {
  let migratedUrl: string;
  let emptyUrl: string;
  beforeAll(async () => {
    migratedUrl = await server.createDatabase(program);
    await prepareDatabase(migratedUrl, {}, format);
    emptyUrl = await server.createDatabase();
  });

  describeCatalog(format.migrations, {
    dialect: postgres,
    migrated: async (change = '') => {
      const { [format.versionTable]: _, ...tables } = await catalogAfter(migratedUrl, change);
      return tables;
    },
    made: (statements) => catalogAfter(emptyUrl, statements.join('\n')),
  });
});
