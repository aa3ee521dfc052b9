import { expect, it } from 'vitest';
import { teamId } from '../../../test/support/rows/marketplace-rows.ts';
import { DAY_MS } from '../../ports/clock.ts';
import { quietWatch } from './balance-watch.ts';
import { grant } from './credit.ts';
import { type Books, openBooks } from './ledger.fixture.ts';
import { watchTeam } from './watch-team.ts';

const HOUR_MS = 3_600_000;
const ROUND_MS = 30_000;
/** In minutes; not a whole number of milliseconds. */
const FRACTION = 33.33333;

function watch(books: Books, changes: object = {}) {
  const { billing } = books.options;
  const zeroBalance = { ...billing.zeroBalance, ...changes };
  const options = { ...books.options, billing: { ...billing, zeroBalance } };
  return watchTeam({ ...books.deps, options }, teamId, books.clock.now());
}

async function nextCheckAt({ store }: Books): Promise<number | undefined> {
  const [next] = await store.read.teams.due({ now: Number.MAX_SAFE_INTEGER, limit: 1 });
  return next?.at;
}

const volumes = { keepMs: DAY_MS, noticesMs: [DAY_MS - FRACTION * 60_000] };

it.each<[string, object]>([
  ['the grace', { graceMs: FRACTION * 60_000 }],
  ['the longer grace of what is stopped', { stoppedGraceMs: FRACTION * 60_000 }],
  ['a notice about volumes', { volumes }],
])(
  'checks a team again where %s has a fraction of a millisecond [fraction-of-a-millisecond]',
  async (_what, changes) => {
    const books = await openBooks();
    await books.keep();
    await books.run();
    await books.run({ id: 'dep-2', status: 'stopped', pausedAt: books.clock.now() });
    for (let passed = 0; passed < 3 * HOUR_MS; passed += 5 * ROUND_MS) {
      await books.clock.advance(5 * ROUND_MS);
      await watch(books, changes);
      const next = (await nextCheckAt(books)) ?? 0;
      expect(next - books.clock.now()).toBeGreaterThanOrEqual(0);
      expect(next - books.clock.now()).toBeLessThanOrEqual(HOUR_MS);
    }
    expect((await books.store.read.teams.byId(teamId))?.watch.exhaustedAt).not.toBeNull();
  },
);

it('checks a team again whose stored watch has a fraction of a millisecond', async () => {
  const books = await openBooks();
  await books.keep();
  await books.clock.advance(HOUR_MS);
  const volumesDeleteAt = books.clock.now() + 10 * ROUND_MS + 0.8;
  await books.store.transact(async (tx) => {
    const team = await tx.teams.byId(teamId);
    if (team === null) throw new Error('expected a team');
    const exhaustedAt = books.clock.now();
    const stored = { ...quietWatch, pendingMinutes: 0, exhaustedAt, volumesDeleteAt, volumesNoticeMs: 1 };
    await tx.teams.update({ ...team, watch: stored });
  });
  await watch(books);
  expect(await nextCheckAt(books)).toBe(volumesDeleteAt + 0.2);
});

it('checks a team within an hour however long its balance lasts [check-within-an-hour]', async () => {
  const books = await openBooks();
  await grant(books.deps, { teamId, amountMicroUsd: 1_000_000_000_000_000, reason: 'a billion dollars' });
  await books.keep({ originalRateMicroUsd: 300 });
  await watch(books);
  expect(await nextCheckAt(books)).toBe(books.clock.now() + HOUR_MS);
});
