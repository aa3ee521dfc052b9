import { startPostgres } from '../../../test/support/databases/postgres.ts';
import { describePlans, type Sent } from '../plans.suite.ts';
import { orchestratorTables } from '../schema/orchestrator.ts';
import { postgres } from '../schema/postgres.ts';
import { skippingLocked, toConnection } from './connection.ts';
import { prepareDatabase } from './open-database.ts';
import { createPool } from './pool.ts';

describePlans('the PostgreSQL store', async () => {
  const server = await startPostgres();
  const url = await server.createDatabase('orchestrator');
  await prepareDatabase(url);
  const pool = createPool(url, 1);
  const sent: Sent[] = [];
  const query = pool.query.bind(pool) as (...args: unknown[]) => Promise<{ rows: unknown[] }>;
  pool.query = ((config: { text: string } | string, values: unknown[] = []) => {
    sent.push({ text: typeof config === 'string' ? config : config.text, values });
    return query(config, values);
  }) as typeof pool.query;
  return {
    bytes: 'bytea',
    connect: () => toConnection(pool, orchestratorTables(postgres), skippingLocked),
    run: async (text) => void (await query(text)),
    takeSent: () => sent.splice(0),
    explain: async ({ text, values }) => {
      const { rows } = await query(`EXPLAIN ${text}`, [...values]);
      return (rows as { 'QUERY PLAN': string }[]).map((row) => row['QUERY PLAN']);
    },
    // `installation` has one row.
    isScan: (line) => /\bSeq Scan\b(?! on installation)/.test(line),
    close: async () => {
      await pool.end();
      await server[Symbol.asyncDispose]();
    },
  };
});
