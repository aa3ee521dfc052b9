import Database from 'better-sqlite3';
import { expect, it } from 'vitest';
import { BillingJob } from './billing-job.ts';
import { type Books, openBooks } from './ledger.fixture.ts';
import { endBilling } from './segments.ts';
import { coverageProblems, verifyLedger } from './verify-ledger.ts';

const HOUR_MS = 3_600_000;

/** A ledger with an ended deployment and a live volume. */
async function openUsedBooks(): Promise<Books> {
  const books = await openBooks(10_000_000);
  const enforce = {
    stop: async () => undefined,
    terminate: async () => undefined,
    deleteVolume: async () => undefined,
  };
  const billing = new BillingJob({ ...books.deps, enforce });
  await books.run();
  await books.keep();
  await books.clock.advance(HOUR_MS);
  await books.observe('dep-1');
  await billing.run();
  await books.clock.advance(1_234_567);
  await books.store.transact(async (tx) => {
    const at = books.clock.now();
    const record = await tx.deployments.byId('dep-1');
    if (record === null) throw new Error('it was inserted');
    await tx.deployments.update({ ...record, status: 'terminated', stoppedAt: at });
    await endBilling(books.deps, tx, 'deployment', 'dep-1', at);
  });
  return books;
}

it('finds nothing wrong in used books', async () => {
  const books = await openUsedBooks();
  expect(await verifyLedger(books.store, books.clock.now())).toEqual({
    findings: [],
    counts: { teams: 1, segments: 2, slices: 3, subjects: 2 },
  });
});

it.each([
  ['UPDATE teams SET balance_micro_usd = balance_micro_usd + 1', /stored balance/],
  [
    "UPDATE ledger_entries SET amount_micro_usd = amount_micro_usd - 1 WHERE account LIKE 'revenue:%'",
    /to zero/,
  ],
  ["UPDATE deployments SET total_cost_micro_usd = 1 WHERE id = 'dep-1'", /total cost/],
  ["UPDATE deployments SET stopped_at = stopped_at + 1 WHERE id = 'dep-1'", /covered up to/],
  ["UPDATE deployments SET started_at = started_at - 1 WHERE id = 'dep-1'", /starts at/],
  ["UPDATE segments SET started_at = started_at + 9999 WHERE subject_id = 'dep-1'", /starts at/],
  ["UPDATE segments SET posted_micro_usd = posted_micro_usd + 1 WHERE subject_id = 'dep-1'", /has posted/],
  ["UPDATE segments SET posted_until = posted_until - 1 WHERE subject_id = 'dep-1'", /posted up to its end/],
  ["UPDATE segments SET rate_micro_usd_per_hour = 3000000 WHERE subject_id = 'dep-1'", /but it costs/],
  ["UPDATE segments SET subject_id = 'dep-9' WHERE subject_id = 'dep-1'", /that does not exist/],
  ["UPDATE segments SET ended_at = NULL WHERE subject_id = 'dep-1'", /covered up to now/],
  ['UPDATE slices SET amount_micro_usd = amount_micro_usd + 1', /slices add up/],
  ['UPDATE slices SET slice_end = slice_end + 7777777', /are not contiguous/],
  ['DELETE FROM slices', /slices add up/],
  [
    "UPDATE slices SET slice_end = slice_end - 60000 WHERE slice_end = (SELECT min(slice_end) FROM slices WHERE segment_id = (SELECT id FROM segments WHERE subject_id = 'dep-1'))",
    /its cost by then/,
  ],
  ["UPDATE segments SET discount_percentage = 50 WHERE subject_id = 'vol-1'", /not 50 % off/],
  ["UPDATE segments SET team_id = 'team-2' WHERE subject_id = 'vol-1'", /team other than team-1/],
  ["UPDATE ledger_entries SET account = 'cash' WHERE account LIKE 'revenue:%'", /do not match its kind/],
  ["UPDATE ledger_transactions SET kind = 'grant' WHERE kind = 'usage'", /do not match its kind/],
  ["UPDATE ledger_transactions SET at = at + 1 WHERE kind = 'usage'", /do not match its kind/],
  ["UPDATE ledger_transactions SET team_id = 'team-2' WHERE kind = 'usage'", /do not match its kind/],
  ['UPDATE slices SET transaction_id = (SELECT min(id) FROM ledger_transactions)', /do not match its kind/],
  [
    "INSERT INTO ledger_transactions (id, kind, team_id, at, memo) VALUES ('txn-9', 'grant', 'team-1', 0, '\"\"')",
    /do not match its kind/,
  ],
  [
    "UPDATE ledger_entries SET account = 'team:team-9' WHERE account LIKE 'team:%'",
    /its team does not exist/,
  ],
  [
    "UPDATE deployments SET status = 'running', started_at = NULL, stopped_at = NULL WHERE id = 'dep-1'",
    /should be covered up to now/,
  ],
])('finds the error after %s', async (statement, problem) => {
  const books = await openUsedBooks();
  const past = new Database(books.file);
  past.pragma('foreign_keys = OFF');
  const triggers = past.prepare("SELECT name FROM sqlite_master WHERE type = 'trigger'").all() as {
    name: string;
  }[];
  for (const { name } of triggers) past.exec(`DROP TRIGGER "${name}"`);
  expect(past.prepare(statement).run().changes).toBeGreaterThan(0);
  past.close();
  const { findings } = await verifyLedger(books.store, books.clock.now());
  expect(findings.map((finding) => finding.problem)).toContainEqual(expect.stringMatching(problem));
});

it('finds a balanced charge without usage', async () => {
  const books = await openUsedBooks();
  await books.store.transact((tx) => {
    const charge = { id: 'txn-9', kind: 'usage', teamId: 'team-1', at: books.clock.now() } as const;
    return tx.ledger.book({ ...charge, memo: 'dep-1 running', reference: null }, [
      { account: 'team:team-1', amountMicroUsd: -5 },
      { account: 'revenue:compute', amountMicroUsd: 5 },
    ]);
  });
  const { findings } = await verifyLedger(books.store, books.clock.now());
  expect(findings.map(({ id }) => id)).toEqual(['txn-9', 'team:team-1', 'revenue:compute']);
});

it('finds a posting up to a future time', async () => {
  const books = await openUsedBooks();
  const { findings } = await verifyLedger(books.store, books.clock.now() - HOUR_MS);
  expect(findings.map(({ problem }) => problem)).toContain('it is posted beyond the current time');
});

it.each([
  [
    'adjacent segments',
    [
      [0, 5],
      [5, 9],
    ],
    9,
    0,
  ],
  [
    'an open segment',
    [
      [0, 5],
      [5, null],
    ],
    null,
    0,
  ],
  [
    'a segment of no length',
    [
      [0, 5],
      [5, 5],
      [5, 9],
    ],
    9,
    0,
  ],
  ['a subject that was never billed', [], 0, 0],
  [
    'a gap',
    [
      [0, 4],
      [5, 9],
    ],
    9,
    1,
  ],
  [
    'an overlap',
    [
      [0, 6],
      [5, 9],
    ],
    9,
    1,
  ],
  ['a segment before the start', [[-1, 9]], 9, 1],
  [
    'a segment after the end',
    [
      [0, 5],
      [5, 10],
    ],
    9,
    1,
  ],
  ['a missing open segment', [[0, 5]], null, 1],
  ['no segments', [], 9, 1],
  [
    'two open segments',
    [
      [0, null],
      [3, null],
    ],
    null,
    1,
  ],
] as const)('counts the coverage problems of %s', (_, spans, until, problems) => {
  const segments = spans.map(([startedAt, endedAt]) => ({ startedAt, endedAt }));
  expect(coverageProblems(segments, 0, until)).toHaveLength(problems);
});
