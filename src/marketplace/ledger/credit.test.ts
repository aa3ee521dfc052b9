import { expect, it } from 'vitest';
import { teamId } from '../../../test/support/rows/marketplace-rows.ts';
import { OperatorError } from '../model/own-rows.ts';
import { realTimeBalance } from './balance.ts';
import { adjust, grant, topUp } from './credit.ts';
import { explainBill, readBill } from './explain-bill.ts';
import { type Books, openBooks } from './ledger.fixture.ts';
import { endBilling, startBilling } from './segments.ts';
import { verifyLedger } from './verify-ledger.ts';

const HOUR_MS = 3_600_000;
const payment = { teamId, amountMicroUsd: 50_000_000, reference: 'pay-1' };

async function balanceOf({ store }: Books): Promise<number | undefined> {
  return (await store.read.teams.byId(teamId))?.balanceMicroUsd;
}

it('books a payment once, however often and concurrently it is reported, and mails one receipt [payment-booked-once]', async () => {
  const books = await openBooks();
  const booked = await Promise.all([topUp(books.deps, payment), topUp(books.deps, payment)]);
  booked.push(await topUp(books.deps, payment));
  expect(new Set(booked.map(({ id }) => id)).size).toBe(1);
  expect(await balanceOf(books)).toBe(50_000_000);
  const mails = await books.store.read.mail.list({ limit: 10 });
  expect(mails.map(({ class: mailClass, kind, subject }) => ({ mailClass, kind, subject }))).toEqual([
    { mailClass: 'billing', kind: 'receipt', subject: 'Receipt: $50.00 for Team team-1' },
  ]);
  expect(await books.store.read.ledger.balances()).toEqual([
    { account: 'cash', amountMicroUsd: -50_000_000 },
    { account: `team:${teamId}`, amountMicroUsd: 50_000_000 },
  ]);
});

it('refuses a reference that was booked for something else', async () => {
  const books = await openBooks();
  await topUp(books.deps, payment);
  await expect(topUp(books.deps, { ...payment, amountMicroUsd: 1 })).rejects.toThrow(
    /"pay-1" was already used/,
  );
  await expect(grant(books.deps, payment)).rejects.toThrow(OperatorError);
});

it('grants and adjusts without a receipt', async () => {
  const books = await openBooks();
  await grant(books.deps, { teamId, amountMicroUsd: 5_000_000, reason: 'welcome' });
  await adjust(books.deps, { teamId, amountMicroUsd: -2_000_000, reason: 'wrong grant' });
  expect(await balanceOf(books)).toBe(3_000_000);
  const memos = (await books.store.read.ledger.transactionsOf(teamId, 9)).map(({ memo }) => memo).toSorted();
  expect(memos).toEqual(['Adjustment of -$2.00: wrong grant', 'Grant of $5.00: welcome']);
  expect(await books.store.read.mail.list({ limit: 10 })).toEqual([]);
});

it.each([0, -1, 0.5, Number.NaN, 2 ** 60])('refuses to book %d micro-USD', async (amountMicroUsd) => {
  const books = await openBooks();
  await expect(topUp(books.deps, { ...payment, amountMicroUsd })).rejects.toThrow(/is not a valid amount/);
  await expect(topUp(books.deps, { ...payment, teamId: 'team-9' })).rejects.toThrow(/no team "team-9"/);
});

it('counts the usage since the last slice', async () => {
  const books = await openBooks(2_000_000);
  const { id } = await books.run();
  await books.clock.advance(HOUR_MS - 1);
  await books.observe(id);
  const { read } = books.store;
  expect(await realTimeBalance(read, teamId, books.clock.now())).toBe(1);
  await books.clock.advance(1);
  await books.observe(id);
  expect(await realTimeBalance(read, teamId, books.clock.now())).toBe(0);
  expect(await balanceOf(books)).toBe(2_000_000);
});

it('begins a segment where the one before ended, never before what was posted', async () => {
  const books = await openBooks();
  await books.run();
  const at = books.clock.now() + HOUR_MS;
  const price = { originalRateMicroUsd: 100_000, rateMicroUsd: 100_000, discountPercentage: 0 };
  await books.store.transact(async (tx) => {
    const named = { subjectKind: 'deployment', subjectId: 'dep-1', teamId, state: 'stopped', price } as const;
    await startBilling(books.deps, tx, { ...named, at });
    const early = await startBilling(books.deps, tx, { ...named, at: at - 5 });
    expect(early.startedAt).toBe(at);
    await endBilling(books.deps, tx, 'deployment', 'dep-1', at + HOUR_MS);
    await endBilling(books.deps, tx, 'deployment', 'dep-1', at + 2 * HOUR_MS);
  });
  expect(await balanceOf(books)).toBe(-2_100_000);
  const bill = explainBill(await readBill(books.store.read, 'dep-1', at));
  expect(bill).toEqual([
    '2026-11-21T00:00:00.000Z to 2026-11-21T01:00:00.000Z  running  $2.00/h  $2.00',
    expect.stringContaining('stopped  $0.10/h'),
    expect.stringContaining('stopped  $0.10/h'),
    'Charged to the balance of its team: $2.10',
  ]);
  expect(explainBill(await readBill(books.store.read, 'dep-2', at))).toEqual([
    'Nothing was billed for dep-2.',
  ]);
});

it('shows the usage since the last slice, up to the last confirmation of the provider', async () => {
  const books = await openBooks();
  await books.run();
  await books.clock.advance(HOUR_MS / 2);
  await books.observe('dep-1');
  const bill = explainBill(await readBill(books.store.read, 'dep-1', books.clock.now() + HOUR_MS));
  expect(bill.slice(1)).toEqual(['Charged to the balance of its team: $0.00', 'Used since: $1.00']);
  expect(bill[0]).toContain('to now  running');
});

it('reports no findings for correct books', async () => {
  const books = await openBooks(1_000_000);
  await books.run();
  await books.keep();
  expect(await verifyLedger(books.store, books.clock.now())).toEqual({
    findings: [],
    counts: { teams: 1, segments: 2, slices: 0, subjects: 2 },
  });
});

it('the current balance counts a deployment up to its last confirmation, and a volume up to now', async () => {
  const books = await openBooks(1_000_000);
  await books.run({ id: 'dep-silent' });
  const { rateMicroUsd } = await books.keep({ id: 'vol-kept' });
  await books.clock.advance(3_600_000);
  const { read } = books.store;
  expect(await realTimeBalance(read, teamId, books.clock.now())).toBe(1_000_000 - rateMicroUsd);
  await books.observe('dep-silent');
  const running = (await read.deployments.byId('dep-silent'))?.rateMicroUsd ?? Number.NaN;
  expect(await realTimeBalance(read, teamId, books.clock.now())).toBe(1_000_000 - rateMicroUsd - running);
});
