import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../../test/support/databases/postgres.ts';
import { toConnection } from '../../postgres/connection.ts';
import { marketplaceTables } from '../../schema/marketplace.ts';
import { postgres } from '../../schema/postgres.ts';
import { type Access, describePlans } from '../plans.suite.ts';
import { transactionOn } from '../queries/repositories.ts';
import { openMarketplacePostgresStore } from './store.ts';

const tables = marketplaceTables(postgres);

interface Plan {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Index Cond'?: string;
  Plans?: Plan[];
}

let server: PostgresServer;
let pool: pg.Pool;

beforeAll(async () => {
  server = await startPostgres();
  const url = await server.createDatabase('marketplace');
  await (await openMarketplacePostgresStore(url)).close();
  // PostgreSQL scans tables without rows. This setting makes it use an index if one helps.
  pool = new pg.Pool({ connectionString: url, max: 1, options: '-c enable_seqscan=off' });
});
afterAll(async () => {
  await pool.end();
  await server[Symbol.asyncDispose]();
});

describePlans('PostgreSQL', {
  accessesOf: async (ask) => {
    const asked: { sql: string; values: unknown[] }[] = [];
    const query = pool.query.bind(pool);
    const recording = Object.assign(Object.create(pool) as pg.Pool, {
      query: (config: { text: string }, values: unknown[]) => {
        asked.push({ sql: config.text, values });
        return query(config, values);
      },
    });
    await ask(transactionOn(toConnection(recording, tables)));
    return Promise.all(
      asked.map(async ({ sql, values }) => {
        const { rows } = await query(`EXPLAIN (FORMAT JSON) ${sql}`, values);
        return { sql, accesses: toAccesses(rows[0]['QUERY PLAN'][0].Plan) };
      }),
    );
  },
  partialIndexes: async () => {
    const { rows } = await pool.query<{ name: string }>(
      'SELECT indexrelid::regclass::text AS name FROM pg_index WHERE indpred IS NOT NULL',
    );
    return new Set(rows.map(({ name }) => name));
  },
});

/** In a bitmap scan, the table is in the node above its index. */
function toAccesses(plan: Plan, tableAbove = ''): Access[] {
  const table = plan['Relation Name'] ?? tableAbove;
  const below = (plan.Plans ?? []).flatMap((each) => toAccesses(each, table));
  const { 'Node Type': node, 'Index Name': index, 'Index Cond': condition } = plan;
  if (index !== undefined) return [{ table, index, isWholeIndex: condition === undefined }, ...below];
  return node === 'Seq Scan' ? [{ table, index: null, isWholeIndex: true }, ...below] : below;
}
