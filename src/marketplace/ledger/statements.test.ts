import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { team, teamId, user } from '../../../test/support/rows/marketplace-rows.ts';
import { DAY_MS } from '../../ports/clock.ts';
import { toHtml } from '../operate/views/statement-text.ts';
import { csvOf, partsOfStatement, readMonth, readStatement } from '../operate/views/statements.ts';
import { BillingJob } from './billing-job.ts';
import { topUp } from './credit.ts';
import { type Books, openBooks } from './ledger.fixture.ts';
import { monthOf, periodOf } from './statements.ts';
import { verifyLedger } from './verify-ledger.ts';

const enforce = {
  stop: async () => undefined,
  terminate: async () => undefined,
  deleteVolume: async () => undefined,
};

/** A team with a deployment and a volume for 40 days, and a payment on the way. Returns its months. */
async function openMonths(): Promise<Books & { months: string[] }> {
  const books = await openBooks(10_000_000);
  const billing = new BillingJob({ ...books.deps, enforce });
  const months = [monthOf(books.clock.now())];
  await books.run({ name: '=cmd|"x"' });
  await books.store.transact(async (tx) => {
    const open = await tx.ledger.openSegmentOf('deployment', 'dep-1');
    if (open !== null) await tx.ledger.updateSegment({ ...open, providerRateMicroUsdPerHour: 1_500_000 });
  });
  await books.keep();
  for (let day = 0; day < 40; day += 4) {
    books.clock.step(4 * DAY_MS);
    await books.observe('dep-1');
    await billing.run();
    if (day === 20) await topUp(books, { teamId, amountMicroUsd: 5_000_000, reference: 'bank-7' });
  }
  months.push(monthOf(books.clock.now()));
  return { ...books, months };
}

it('a statement opens where the last one closed, and adds up', async () => {
  const { store, months, clock } = await openMonths();
  const [one, two] = await Promise.all(
    months.map((month) => readStatement(store.read, teamId, month, clock.now())),
  );
  if (one === undefined || two === undefined) throw new Error('there are two months');
  expect(two.opening_usd).toBe(one.closing_usd);
  for (const { opening_usd: opening, booked_usd: booked, used_usd: used, closing_usd: closing } of [one, two])
    expect(closing).toBeCloseTo(opening + booked - used, 6);
  expect([...one.booked, ...two.booked].map(({ kind }) => kind)).toContain('top_up');
  expect(two.used.map(({ kind, state }) => [kind, state])).toEqual([
    ['deployment', 'running'],
    ['volume', expect.any(String)],
  ]);
  // The parts of a month meet at its midnight.
  expect(two.used[0]?.from).toBe(one.used[0]?.until);
  const { read } = store;
  const balance = (await read.ledger.balances()).find(({ account }) => account === `team:${teamId}`);
  expect(two.closing_usd).toBeCloseTo((balance?.amountMicroUsd ?? 0) / 1e6, 6);
});

it('is final once the month is over and charged up to its end', async () => {
  const { store, months, clock, observe, deps } = await openMonths();
  const isFinal = async (month = '') =>
    (await readStatement(store.read, teamId, month, clock.now())).is_final;
  expect(await Promise.all(months.map(isFinal))).toEqual([true, false]);
  const { to } = periodOf(months[1] ?? '');
  clock.step(to + 1 - clock.now());
  const billing = new BillingJob({ ...deps, enforce });
  await billing.run();
  // The volume is charged; the provider has not confirmed the deployment since.
  expect(await isFinal(months[1])).toBe(false);
  await observe('dep-1');
  await billing.run();
  expect(await isFinal(months[1])).toBe(true);
});

it('the sums of the providers are those of the statements, at their own prices too', async () => {
  const { store, months, clock } = await openMonths();
  for (const month of months) {
    const statement = await readStatement(store.read, teamId, month, clock.now());
    const { providers, days } = await readMonth(store.read, month, clock.now());
    const revenue = providers.reduce((sum, { revenue_usd: usd }) => sum + usd, 0);
    expect(revenue).toBeCloseTo(statement.used_usd, 6);
    expect(days.reduce((sum, one) => sum + one.compute_usd + one.storage_usd, 0)).toBeCloseTo(revenue, 6);
    const compute = providers.find(({ kind }) => kind === 'deployment');
    expect(compute?.unpriced_hours).toBe(0);
    expect(compute?.provider_usd).toBeCloseTo((compute?.hours ?? 0) * 1.5, 3);
    const storage = providers.find(({ kind }) => kind === 'volume');
    expect(storage).toMatchObject({ provider_usd: 0, unpriced_hours: storage?.hours });
  }
});

it('bad debt is what teams below zero owe at the end of each day', async () => {
  const { store, months, clock } = await openMonths();
  await store.transact(async (tx) => {
    await tx.users.insert(user({ id: 'usr-9' }));
    await tx.teams.insert(team({ id: 'team-9', ownerId: 'usr-9' }));
  });
  await topUp(
    { store, clock, random: { bytes: (n: number) => Buffer.alloc(n, 7), next: () => 0 } } as never,
    {
      teamId: 'team-9',
      amountMicroUsd: 1_000_000_000,
      reference: 'other',
    },
  );
  const { days } = await readMonth(store.read, months[1] ?? '', clock.now());
  const { closing_usd: closing } = await readStatement(store.read, teamId, months[1] ?? '', clock.now());
  expect(closing).toBeLessThan(0);
  expect(days.at(-1)?.bad_debt_usd).toBeCloseTo(-closing, 6);
  expect(days[0]?.bad_debt_usd).toBeLessThan(days.at(-1)?.bad_debt_usd ?? 0);
});

it('verify-ledger finds a slice that the statements have and the entries do not', async () => {
  const { store, file, months, clock } = await openMonths();
  expect((await verifyLedger(store, clock.now())).findings).toEqual([]);
  const db = new Database(file);
  db.exec('DROP TRIGGER slices_update; ');
  db.prepare('UPDATE slices SET amount_micro_usd = amount_micro_usd + 1 WHERE slice_end = ?').run(
    periodOf(months[1] ?? '').from,
  );
  db.close();
  const { findings } = await verifyLedger(store, clock.now());
  expect(findings.map(({ problem }) => problem)).toContainEqual(
    expect.stringContaining(`its statement of ${months[0]} has usage of`),
  );
});

it('is CSV that no spreadsheet takes for a formula, and a page without markup of users', async () => {
  const { store, months, clock } = await openMonths();
  const statement = await readStatement(store.read, teamId, months[1] ?? '', clock.now());
  const parts = partsOfStatement({ ...statement, team: '<b>Team</b>' });
  const csv = csvOf(parts).split('\r\n');
  expect(csv.find((line) => line.startsWith('used,dep-1'))).toContain(`,"'=cmd|""x""",deployment,`);
  expect(csv).toHaveLength(
    2 + statement.used.length + statement.booked.length + (statement.booked.length > 0 ? 2 : 1),
  );
  expect(csv[0]).toContain('opening_usd,booked_usd,used_usd,closing_usd,is_final');
  const page = toHtml(parts);
  expect(page).toContain('&lt;b&gt;Team&lt;/b&gt;');
  expect(page).not.toContain('<b>Team');
  expect(page).toContain('=cmd|&quot;x&quot;');
});
