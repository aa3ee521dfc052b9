import { Pool } from 'pg';
import { expect, it } from 'vitest';
import { startPostgres } from '../../../../test/support/databases/postgres.ts';
import { seed } from '../../../../test/support/rows/marketplace-rows.ts';
import { toConnection } from '../../postgres/connection.ts';
import { marketplaceTables } from '../../schema/marketplace.ts';
import { postgres } from '../../schema/postgres.ts';
import { growing, ledgerReads, ledgerWrites } from '../ledger-plans.fixture.ts';
import { ledgerWriter } from '../queries/ledger.ts';
import { openMarketplacePostgresStore } from './store.ts';

interface Plan {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Cond'?: string;
  Plans?: Plan[];
}

it('reads and writes the ledger by its indexes', async () => {
  await using server = await startPostgres();
  const url = await server.createDatabase('marketplace');
  const store = await openMarketplacePostgresStore(url);
  await seed(store);
  await store.close();
  // PostgreSQL scans an empty table. With this setting it does so only if no index helps.
  const pool = new Pool({ connectionString: url, max: 1, options: '-c enable_seqscan=off' });
  const query = pool.query.bind(pool) as (...given: unknown[]) => Promise<{ rows: unknown[] }>;
  const asked: { text: string; values: unknown[] }[] = [];
  pool.query = ((config: { text: string }, values: unknown[] = []) => {
    asked.push({ text: config.text, values });
    return query(config, values);
  }) as typeof pool.query;
  const ledger = ledgerWriter(toConnection(pool, marketplaceTables(postgres)));
  for (const read of ledgerReads) await read(ledger);
  for (const write of ledgerWrites) await write(ledger);
  expect(asked.length).toBeGreaterThanOrEqual(ledgerReads.length + ledgerWrites.length);
  for (const { text, values } of asked) {
    const { rows } = await query(`EXPLAIN (FORMAT JSON) ${text}`, values);
    const [{ Plan: plan }] = (rows[0] as { 'QUERY PLAN': [{ Plan: Plan }] })['QUERY PLAN'];
    expect([text, scansOf(plan)]).toEqual([text, []]);
  }
  await pool.end();
});

/** The nodes of a plan that scan a growing table or a whole index. */
function scansOf(plan: Plan): Plan[] {
  const isGrowing = growing.includes(plan['Relation Name'] ?? '');
  const isScan = /^(Seq|Index|Index Only) Scan$/.test(plan['Node Type']) && plan['Index Cond'] === undefined;
  return [...(isGrowing && isScan ? [plan] : []), ...(plan.Plans ?? []).flatMap(scansOf)];
}
