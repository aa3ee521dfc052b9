import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { segment } from '../../../test/support/rows/marketplace-rows.ts';
import { accrue } from './accrue.ts';
import { endBilling } from './bill.ts';
import { explainBill, readBill } from './explain-bill.ts';
import { type Books, openBooks } from './ledger.fixture.ts';
import { RollUp } from './roll-up.ts';
import { verifyLedger } from './verify-ledger.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** No hour's price is a whole number: slices are rounded, but their sum is not. */
const ODD_RATE = 1_999_993;

/** A ledger with a deployment that has run for `days` and is billed hourly. */
async function openUsedBooks(days: number): Promise<Books> {
  const books = await openBooks(1_000_000_000);
  await books.clock.advance(7 * HOUR_MS + 1_234);
  const rates = { originalRateMicroUsd: ODD_RATE, rateMicroUsd: ODD_RATE };
  await books.run(rates);
  for (let hour = 0; hour < 24 * days; hour++) {
    await books.clock.advance(HOUR_MS);
    await books.observe('dep-1');
    await bill(books);
  }
  return books;
}

async function bill({ deps, store, clock }: Books): Promise<void> {
  const open = await store.read.ledger.openSegmentOf('deployment', 'dep-1');
  if (open !== null) await accrue(deps, [open], clock.now());
}

const findingsOf = async ({ store, clock }: Books) => (await verifyLedger(store, clock.now())).findings;

it('replaces the slices of each old day with one line, and changes no sum [roll-up-changes-no-sum]', async () => {
  const books = await openUsedBooks(3);
  const { ledger, teams } = books.store.read;
  const [open] = await ledger.openSegments({ limit: 1 });
  if (open === undefined) throw new Error('it is open');
  const readAll = async () => ({
    balances: await ledger.balances(),
    team: await teams.byId('team-1'),
    days: await ledger.daysOf(open.id),
    bill: explainBill(await readBill(books.store.read, 'dep-1', books.clock.now()), { byDay: true }),
  });
  const before = await readAll();
  await books.clock.advance(35 * DAY_MS);
  const slices = (await ledger.slicesOf(open.id)).length;
  const rollUp = new RollUp(books.deps);
  await rollUp.run();
  const after = await readAll();
  const { bill: _, ...sums } = before;
  expect(after).toMatchObject(sums);
  expect(after.bill.filter((line) => line.startsWith('  '))).toEqual(
    before.bill.filter((line) => line.startsWith('  ')),
  );
  expect(before.days).toHaveLength(4);
  // The day of the last billing was not over, so it keeps its slices.
  expect((await ledger.slicesOf(open.id)).length).toBeLessThan(24);
  expect(slices).toBeGreaterThan(70);
  const { entries, transactions, uses } = await ledger.countRows();
  expect(uses).toBe((await ledger.slicesOf(open.id)).length + 3);
  expect([entries, transactions]).toEqual([2 * (uses + 1), uses + 1]);
  expect(await findingsOf(books)).toEqual([]);
  await books.observe('dep-1');
  await bill(books);
  await rollUp.run();
  expect(await findingsOf(books)).toEqual([]);
});

it('keeps the slices of recent days', async () => {
  const books = await openUsedBooks(3);
  const [open] = await books.store.read.ledger.openSegments({ limit: 1 });
  await books.clock.advance(31 * DAY_MS);
  const before = await books.store.read.ledger.slicesOf(open?.id ?? '');
  await new RollUp(books.deps).run();
  expect(await books.store.read.ledger.slicesOf(open?.id ?? '')).toEqual(before);
});

it('continues with the other segments where the books of one are wrong, and reports it', async () => {
  const books = await openUsedBooks(2);
  await books.run({ id: 'dep-2', providerName: 'bm-2' });
  const past = new Database(books.file);
  past.exec('DROP TRIGGER ledger_entries_update');
  past.exec(
    "UPDATE ledger_entries SET amount_micro_usd = amount_micro_usd - 1 WHERE account LIKE 'team:%' AND transaction_id = (SELECT transaction_id FROM slices ORDER BY slice_end LIMIT 1)",
  );
  past.close();
  await books.clock.advance(HOUR_MS);
  await books.store.transact((tx) => endBilling(books.deps, tx, 'deployment', 'dep-2', books.clock.now()));
  await books.clock.advance(40 * DAY_MS);
  await new RollUp(books.deps).run();
  // Logged once per round, not once per slice.
  expect(books.lines).toEqual([
    expect.objectContaining({ level: 'error', message: expect.stringContaining('could not be rolled up') }),
  ]);
  const [other] = await books.store.read.ledger.segmentsOf('deployment', 'dep-2');
  expect(await books.store.read.ledger.slicesOf(other?.id ?? '')).toEqual([]);
  expect(await books.store.read.ledger.daysOf(other?.id ?? '')).toHaveLength(1);
});

it.each([
  ['UPDATE day_lines SET amount_micro_usd = amount_micro_usd + 1', /slices add up/],
  ['DELETE FROM day_lines WHERE ends_at = (SELECT min(ends_at) FROM day_lines)', /slices add up/],
  ['UPDATE day_lines SET slice_end = slice_end - 60000', /its cost by then/],
  [
    'UPDATE day_lines SET transaction_id = (SELECT min(id) FROM ledger_transactions)',
    /do not match its kind/,
  ],
])('leaves books in which verify-ledger finds the error after %s', async (statement, problem) => {
  const books = await openUsedBooks(2);
  await books.clock.advance(40 * DAY_MS);
  await new RollUp(books.deps).run();
  const past = new Database(books.file);
  past.pragma('foreign_keys = OFF');
  expect(() => past.exec(statement)).toThrow(/the ledger is append-only/);
  for (const name of ['day_lines_update', 'day_lines_delete']) past.exec(`DROP TRIGGER ${name}`);
  expect(past.prepare(statement).run().changes).toBeGreaterThan(0);
  past.close();
  const problems = (await findingsOf(books)).map((finding) => finding.problem);
  expect(problems).toContainEqual(expect.stringMatching(problem));
});

it('has nothing to do where there are no slices', async () => {
  const books = await openBooks();
  await books.store.transact((tx) => tx.ledger.insertSegment(segment()));
  await books.clock.advance(40 * DAY_MS);
  await new RollUp(books.deps).run();
  expect(books.lines).toEqual([]);
});
