import { expect, it } from 'vitest';
import { member, now, teamId, user } from '../../../test/support/rows/marketplace-rows.ts';
import { aroundMethods } from '../../ports/around-methods.ts';
import { DAY_MS } from '../../ports/clock.ts';
import { assignDiscount, endDiscount } from '../discounts/discounts.ts';
import {
  balanceOf,
  billingEveryFiveMinutes,
  DOLLAR,
  HOUR_MS,
  MINUTE_MS,
  neverCalled,
  pass,
  ROUND_MS,
} from './billing-job.fixture.ts';
import { BillingJob } from './billing-job.ts';
import { topUp } from './credit.ts';
import { type Books, openBooks } from './ledger.fixture.ts';
import { endBilling } from './segments.ts';
import { verifyLedger } from './verify-ledger.ts';

it('posts a slice once the provider has confirmed its end [slices-up-to-the-confirmed]', async () => {
  const books = await openBooks(10 * DOLLAR);
  const billing = new BillingJob({ ...books.deps, enforce: neverCalled });
  await books.run();
  await books.clock.advance(12 * MINUTE_MS);
  await books.observe('dep-1');
  await books.clock.advance(HOUR_MS);
  await billing.run();
  expect(await balanceOf(books)).toBe(10 * DOLLAR);
  await books.observe('dep-1');
  await billing.run();
  await billing.run();
  const [segment] = await books.store.read.ledger.segmentsOf('deployment', 'dep-1');
  expect(segment?.postedUntil).toBe(now + HOUR_MS);
  expect(await balanceOf(books)).toBe(8 * DOLLAR);
  const record = await books.store.read.deployments.byId('dep-1');
  expect(record).toMatchObject({
    totalCostMicroUsd: 2 * DOLLAR,
    lastCreditDeductionAt: now + HOUR_MS,
    revision: 1,
  });
  const [usage] = await books.store.read.ledger.transactionsOf(teamId, 1);
  expect(usage?.memo).toBe(
    'dep-1 running from 2026-11-21T00:00:00.000Z to 2026-11-21T01:00:00.000Z at $2.00 per hour',
  );
});

it('posts each segment once for each boundary, and does not read it otherwise [slices-hourly]', async () => {
  const books = await openBooks(1_000 * DOLLAR);
  const billing = new BillingJob({ ...books.deps, enforce: neverCalled });
  // Moves the rounds off midnight.
  await books.clock.advance(7_001);
  const ids = Array.from({ length: 3 }, (_, index) => `vol-${index}`);
  for (const id of ids) await books.keep({ id, volumeId: `v-${id}`, name: id, providerName: id });
  await pass(books, billing, 49 * HOUR_MS, 10 * MINUTE_MS);
  const { ledger } = books.store.read;
  for (const id of ids) {
    const open = await ledger.openSegmentOf('volume', id);
    const ends = (await ledger.slicesOf(open?.id ?? '')).map(({ sliceEnd }) => sliceEnd - now);
    expect(ends).toEqual(Array.from({ length: 49 }, (_, index) => (index + 1) * HOUR_MS));
    expect((await ledger.daysOf(open?.id ?? ''))[1]).toEqual({ day: now + DAY_MS, amountMicroUsd: 240_000 });
  }
  const asked: string[] = [];
  const counted = aroundMethods(books.store.read.ledger, (call, name) => {
    asked.push(name);
    return call();
  });
  await books.clock.advance(1);
  const store = { ...books.store, read: { ...books.store.read, ledger: counted } };
  await billing.stop();
  await new BillingJob({ ...books.deps, store, enforce: neverCalled }).run();
  expect(asked).toEqual(['dueSegments']);
});

it('bills a volume by the hour up to now, whatever its provider says', async () => {
  const books = await openBooks(DOLLAR);
  const billing = new BillingJob({ ...books.deps, enforce: neverCalled });
  await books.keep();
  await books.clock.advance(3 * HOUR_MS);
  await billing.run();
  expect(await balanceOf(books)).toBe(DOLLAR - 30_000);
  expect(
    (await books.store.read.ledger.balances()).find(({ account }) => account === 'revenue:storage'),
  ).toEqual({
    account: 'revenue:storage',
    amountMicroUsd: 30_000,
  });
});

it('starts a new segment where a discount starts or ends, and shows the new rates [discount-splits-segment]', async () => {
  const books = await openBooks(100 * DOLLAR);
  const billing = new BillingJob({ ...books.deps, enforce: neverCalled });
  await books.run({ originalStoppedRateMicroUsd: 100_000, stoppedRateMicroUsd: 100_000 });
  const startsAt = now + 90 * MINUTE_MS + 1;
  await assignDiscount(books.deps, { teamId, percentage: 25, startsAt, endsAt: startsAt + HOUR_MS });
  await pass(books, billing, 2 * HOUR_MS);
  expect(await books.store.read.deployments.byId('dep-1')).toMatchObject({
    originalRateMicroUsd: 2 * DOLLAR,
    rateMicroUsd: 1.5 * DOLLAR,
    discountPercentage: 25,
    stoppedRateMicroUsd: 75_000,
  });
  await pass(books, billing, 2 * HOUR_MS);
  expect(await books.store.read.deployments.byId('dep-1')).toMatchObject({
    rateMicroUsd: 2 * DOLLAR,
    discountPercentage: 0,
    stoppedRateMicroUsd: 100_000,
  });
  const segments = await books.store.read.ledger.segmentsOf('deployment', 'dep-1');
  expect(
    segments.map(({ startedAt, rateMicroUsdPerHour }) => [startedAt - now, rateMicroUsdPerHour]),
  ).toEqual([
    [0, 2 * DOLLAR],
    [90 * MINUTE_MS + 1, 1.5 * DOLLAR],
    [150 * MINUTE_MS + 1, 2 * DOLLAR],
  ]);
  expect((await verifyLedger(books.store, books.clock.now())).findings).toEqual([]);
});

it('keeps the locked rate of a volume under a better discount, and goes back to the standard one when it ends [volume-rate-locked]', async () => {
  const books = await openBooks(100 * DOLLAR);
  const billing = billingEveryFiveMinutes(books);
  const { id } = await assignDiscount(books.deps, { teamId, percentage: 10 });
  await books.keep();
  await assignDiscount(books.deps, {
    teamId,
    percentage: 40,
    startsAt: now + HOUR_MS,
    endsAt: now + 2 * HOUR_MS,
  });
  await pass(books, billing, 90 * MINUTE_MS);
  expect(await books.store.read.volumes.byId('vol-1')).toMatchObject({ rateMicroUsd: 9_000 });
  await pass(books, billing, 90 * MINUTE_MS);
  await endDiscount(books.deps, id);
  await pass(books, billing, HOUR_MS);
  expect(await books.store.read.volumes.byId('vol-1')).toMatchObject({
    rateMicroUsd: 10_000,
    discountPercentage: 0,
    discountEndsAt: null,
    lastPriceUpdateAt: now + 3 * HOUR_MS,
  });
  await books.store.transact((tx) => endBilling(books.deps, tx, 'volume', 'vol-1', now + 4 * HOUR_MS));
  expect(await books.store.read.volumes.byId('vol-1')).toMatchObject({ totalCostMicroUsd: 27_000 + 10_000 });
});

it('warns the owner and the admins once per threshold, and mails that the balance is used up [balance-warnings]', async () => {
  const books = await openBooks(26 * DOLLAR);
  await books.store.transact(async (tx) => {
    for (const role of ['admin', 'member'] as const) {
      await tx.users.insert(user({ id: role }));
      await tx.teams.putMember(member({ userId: role, role }));
    }
  });
  const billing = new BillingJob({ ...books.deps, enforce: neverCalled });
  await books.run();
  await pass(books, billing, 12 * HOUR_MS + 30 * MINUTE_MS, 5 * MINUTE_MS);
  await pass(books, billing, 40 * MINUTE_MS);
  const mails = (await books.store.read.mail.list({ limit: 100 })).toReversed();
  const ofOwner = mails.filter(({ to }) => to === 'usr-1@example.com').map(({ subject }) => subject);
  expect(ofOwner).toEqual([
    ...['12 h', '6 h', '3 h', '1 h', '30 min', '15 min', '5 min'].map(
      (time) => `Low balance: Team team-1 has about ${time} left`,
    ),
    'The balance of Team team-1 is used up',
  ]);
  expect(mails.filter(({ to }) => to === 'admin@example.com')).toHaveLength(8);
  expect(mails.filter(({ to }) => to === 'member@example.com')).toEqual([]);
});

/** Advances the clock in rounds while no provider confirms anything. */
async function passInSilence(
  books: Books,
  billing: BillingJob,
  ms: number,
  roundMs = ROUND_MS,
): Promise<void> {
  for (let passed = 0; passed < ms; passed += roundMs) {
    await books.clock.advance(roundMs);
    await billing.run();
  }
}

it('does not mail or stop for unconfirmed time, and does so within two rounds once it is confirmed [unconfirmed-neither-mails-nor-stops]', async () => {
  const books = await openBooks(25 * DOLLAR);
  const billing = new BillingJob({ ...books.deps, enforce: neverCalled });
  await books.run();
  const mailed = async () => (await books.store.read.mail.list({ limit: 9 })).map(({ kind }) => kind);
  await passInSilence(books, billing, 8 * HOUR_MS, 5 * MINUTE_MS);
  expect(await mailed()).toEqual([]);
  await books.observe('dep-1');
  await passInSilence(books, billing, 2 * ROUND_MS);
  expect(await mailed()).toEqual(['low_balance']);
  await billing.stop();
});

it('applies within a round a discount that changed while the provider was silent', async () => {
  const books = await openBooks(1_000 * DOLLAR);
  const billing = new BillingJob({ ...books.deps, enforce: neverCalled });
  await books.run();
  await assignDiscount(books.deps, { teamId, percentage: 50, startsAt: now + HOUR_MS });
  await passInSilence(books, billing, 3 * HOUR_MS + 20 * MINUTE_MS, 5 * MINUTE_MS);
  const rates = async () =>
    (await books.store.read.ledger.segmentsOf('deployment', 'dep-1')).map((each) => each.rateMicroUsdPerHour);
  expect(await rates()).toEqual([2 * DOLLAR]);
  expect(await books.store.read.deployments.byId('dep-1')).toMatchObject({ rateMicroUsd: DOLLAR });
  await books.observe('dep-1');
  await passInSilence(books, billing, ROUND_MS);
  expect(await rates()).toEqual([2 * DOLLAR, DOLLAR]);
  await billing.stop();
});

it('ends running deployments after the grace period, and keeps them after a top-up [grace-ends-what-runs]', async () => {
  const books = await openBooks(2 * DOLLAR);
  const ended: string[] = [];
  const enforce = {
    stop: async (id: string) => void ended.push(`stop ${id}`),
    terminate: async (id: string) => void ended.push(`terminate ${id}`),
    deleteVolume: neverCalled.deleteVolume,
  };
  const billing = new BillingJob({ ...books.deps, enforce });
  await books.run();
  await pass(books, billing, HOUR_MS + 50 * MINUTE_MS);
  expect(ended).toEqual([]);
  await topUp(books.deps, { teamId, amountMicroUsd: 2 * DOLLAR, reference: 'pay-1' });
  await pass(books, billing, HOUR_MS);
  expect(ended).toEqual([]);
  await pass(books, billing, 12 * MINUTE_MS);
  expect(new Set(ended)).toEqual(new Set(['stop dep-1']));
  await billing.stop();
});

it('checks a team once more after its last deployment ended, and then drops it', async () => {
  const books = await openBooks(DOLLAR);
  const billing = new BillingJob({ ...books.deps, enforce: neverCalled });
  await books.run();
  await pass(books, billing, 5 * MINUTE_MS);
  const watchOf = async () => (await books.store.read.teams.byId(teamId))?.watch;
  expect(await watchOf()).toMatchObject({ mailedMinutes: 30 });
  await books.store.transact((tx) => endBilling(books.deps, tx, 'deployment', 'dep-1', books.clock.now()));
  await pass(books, billing, 40 * MINUTE_MS);
  expect(await watchOf()).toMatchObject({ mailedMinutes: null });
});
