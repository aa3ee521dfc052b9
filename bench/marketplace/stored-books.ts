import { marketplaceStores } from '../../src/compose/stores/marketplace.ts';
import { openIn } from '../../src/compose/stores/stores.ts';
import { postUntil } from '../../src/marketplace/ledger/segments.ts';
import { systemClock as clock, systemRandom as random } from '../../src/runtime/system.ts';
import { runningDeployment, seed, segment, teamId } from '../../test/support/rows/marketplace-rows.ts';
import { multiplyRows, numbered } from '../support/multiply-rows.ts';

const SLICE_MS = 300_000;
const DAY_MS = 86_400_000;
export const SLICES_A_DAY = DAY_MS / SLICE_MS;
const RATE = 2_400_000;

/**
 * Writes the books of a marketplace with one team for each day of usage, billed in slices of five minutes.
 * The first goes through the ledger, the others are copies of it. The books are valid.
 */
export async function storeBooks(database: string, days: number): Promise<void> {
  const store = await openIn(marketplaceStores, database, {});
  const startedAt = Math.floor(clock.now() / DAY_MS - 3) * DAY_MS;
  const endedAt = startedAt + DAY_MS;
  try {
    await seed(store, 2 * 24 * RATE);
    await store.transact(async (tx) => {
      const ran = { createdAt: startedAt, startedAt, observedAt: endedAt, rateMicroUsd: RATE };
      await tx.deployments.insert(runningDeployment({ ...ran, originalRateMicroUsd: RATE, cleanup: 'done' }));
      const rates = { rateMicroUsdPerHour: RATE, originalRateMicroUsdPerHour: RATE };
      let open = segment({ startedAt, postedUntil: startedAt, ...rates });
      await tx.ledger.insertSegment(open);
      for (let end = startedAt + SLICE_MS; end <= endedAt; end += SLICE_MS)
        open = await postUntil({ random }, tx, open, end);
      await tx.ledger.updateSegment({ ...open, endedAt });
      const record = await tx.deployments.byId('dep-1');
      if (record === null) throw new Error('the deployment is not there');
      await tx.deployments.update({ ...record, status: 'terminated', stoppedAt: endedAt });
    });
  } finally {
    await store.close();
  }
  const count = days - 1;
  const ownTeam = { team_id: numbered('team') };
  // Like `newIdAt`: the time comes first, so that entries of one booking are stored together.
  const transactionOf = (column: string) =>
    `substr(${column}, 1, 16) || '0000000000' || CAST(1000000000 + number AS TEXT)`;
  const copies: [table: string, where: string, change: Record<string, string>][] = [
    ['teams', `id = '${teamId}'`, { id: numbered('team'), slug: numbered('team') }],
    ['deployments', "id = 'dep-1'", { id: numbered('dep'), provider_name: numbered('bm'), ...ownTeam }],
    ['segments', "id = 'seg-1'", { id: numbered('seg'), subject_id: numbered('dep'), ...ownTeam }],
    ['ledger_transactions', "id LIKE 'txn-%'", { id: transactionOf('id'), ...ownTeam }],
    [
      'ledger_entries',
      "transaction_id LIKE 'txn-%'",
      {
        transaction_id: transactionOf('transaction_id'),
        account: `CASE WHEN account LIKE 'team:%' THEN 'team:' || ${numbered('team')} ELSE account END`,
      },
    ],
    [
      'slices',
      "segment_id = 'seg-1'",
      { segment_id: numbered('seg'), transaction_id: transactionOf('transaction_id') },
    ],
  ];
  await multiplyRows(
    database,
    copies.map(([table, where, change]) => ({ table, where, change, count })),
  );
}
