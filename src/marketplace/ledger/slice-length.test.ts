import { expect, it } from 'vitest';
import { teamId } from '../../../test/support/rows/marketplace-rows.ts';
import { assignDiscount } from '../discounts/discounts.ts';
import { defaultOptions } from '../model/options.ts';
import { seededRandom } from '../sync/sync.fixture.ts';
import { realTimeBalance } from './balance.ts';
import { BillingJob } from './billing-job.ts';
import { topUp } from './credit.ts';
import { readBill } from './explain-bill.ts';
import { openBooks } from './ledger.fixture.ts';
import { endBilling, startBilling } from './segments.ts';
import { verifyLedger } from './verify-ledger.ts';

const HOUR_MS = 3_600_000;
const nothing = async () => undefined;

/** Five days of silence, pauses, discounts and payments at random. Returns all that a user or an operator sees. */
async function live(seed: number, sliceMs: number) {
  const random = seededRandom(seed);
  const below = (limit: number) => Math.floor(limit * random.next());
  const { deps, store, clock, ...books } = await openBooks(150_000_000);
  const volumeDiscounts = [{ spendMicroUsd: 20_000_000, percentage: 7 }];
  deps.options = { ...deps.options, billing: { ...deps.options.billing, sliceMs, volumeDiscounts } };
  const enforce = { stop: nothing, terminate: nothing, deleteVolume: nothing };
  const billing = new BillingJob({ ...deps, enforce });
  await books.run();
  await books.keep();
  const balances: number[] = [];
  let silentSteps = 0;
  for (let step = 0; step < 60; step++) {
    await clock.advance(1 + below(4 * HOUR_MS));
    const at = clock.now();
    const choice = below(12);
    silentSteps = choice === 0 ? 8 : Math.max(0, silentSteps - 1);
    if (silentSteps === 0) await books.observe('dep-1');
    if (choice === 1) {
      const startsAt = at + below(2 * HOUR_MS);
      const endsAt = startsAt + 1 + below(30 * HOUR_MS);
      await assignDiscount(deps, { teamId, percentage: 5 + below(40), startsAt, endsAt });
    }
    if (choice === 2 && silentSteps === 0) {
      const rate = 100_003 + 1_900_000 * below(2);
      const price = { rateMicroUsd: rate, originalRateMicroUsd: rate, discountPercentage: 0 };
      const segment = { subjectKind: 'deployment', subjectId: 'dep-1', state: 'running' } as const;
      await store.transact((tx) => startBilling(deps, tx, { ...segment, teamId, price, at }));
    }
    if (choice === 3)
      await topUp(deps, { teamId, amountMicroUsd: 1_000_000 * (1 + below(20)), reference: `${step}` });
    for (let round = 0; round < 2; round++) {
      await billing.run();
      await clock.advance(30_000);
    }
    balances.push(await realTimeBalance(store.read, teamId, clock.now()));
  }
  await books.observe('dep-1');
  await billing.run();
  expect(await verifyLedger(store, clock.now())).toMatchObject({ findings: [] });
  await store.transact((tx) => endBilling(deps, tx, 'deployment', 'dep-1', clock.now()));
  await store.transact((tx) => endBilling(deps, tx, 'volume', 'vol-1', clock.now()));
  const mails = await store.read.mail.list({ limit: 99 });
  const { uses: slices } = await store.read.ledger.countRows();
  return {
    slices,
    seen: {
      balances,
      team: await store.read.teams.byId(teamId),
      bill: await readBill(store.read, 'dep-1', clock.now(), { byDay: true }),
      mails: mails.map(({ kind, createdAt }) => `${kind} ${createdAt}`).sort(),
    },
  };
}

it.each([1, 2])(
  'slices of a day show the same balances, mails and bills as slices of a minute, story %d',
  async (seed) => {
    const [daily, eager] = [await live(seed, defaultOptions.billing.sliceMs), await live(seed, 60_000)];
    expect(daily.seen).toEqual(eager.seen);
    expect(daily.slices).toBeLessThan(eager.slices / 3);
  },
);
