import fc from 'fast-check';
import { expect, it } from 'vitest';
import { remainingMinutes } from '../model/ledger-records.ts';
import type { BalanceWatch } from '../model/people.ts';
import {
  type BalanceNews,
  lowBalanceMinutes,
  nextReadingAt,
  quietWatch,
  readBalance,
  readCredit,
} from './balance-watch.ts';

const TICK_MS = 30_000;
/** The rate of a team that spends one dollar a minute. */
const BURN = 60_000_000;

function reading(minutes: number, at = 0) {
  return { at, balanceMicroUsd: Math.round(minutes * 1_000_000), burnMicroUsdPerHour: BURN };
}

/** Reads the remaining minutes tick by tick and returns what is mailed. */
function follow(minutes: readonly number[], from: BalanceWatch = quietWatch) {
  let watch = from;
  const mailed: (number | 'exhausted')[] = [];
  for (const [tick, remaining] of minutes.entries()) {
    let news: BalanceNews | null;
    ({ watch, news } = readBalance(watch, reading(remaining, tick * TICK_MS)));
    if (news !== null) mailed.push(news.kind === 'low' ? news.minutes : 'exhausted');
  }
  return { watch, mailed };
}

it('mails each threshold once while the balance runs out, and once when it is used up [balance-threshold-mails]', () => {
  const ticks = Array.from({ length: 1_700 }, (_, tick) => 800 - tick / 2);
  expect(follow(ticks).mailed).toEqual([...lowBalanceMinutes.toReversed(), 'exhausted']);
});

it('mails only when a second reading says the same', () => {
  expect(follow([20]).mailed).toEqual([]);
  expect(follow([20, 2_000, 20, 2_000, 20, 2_000]).mailed).toEqual([]);
  expect(follow([20, 20]).mailed).toEqual([30]);
});

it('mails the lowest threshold that was passed, and none above it later', () => {
  expect(follow([20, 20, 20, 100, 100, 500, 500]).mailed).toEqual([30]);
});

it('sends one mail for a flapping reading, not seven', () => {
  const flapping = Array.from({ length: 190 }, (_, tick) => (tick % 4 < 2 ? 650 : 750 + (tick % 3) * 400));
  expect(follow(flapping).mailed).toEqual([720]);
});

it('begins another episode after half an hour well above every threshold, and not before', () => {
  const low = [700, 700];
  const wellAbove = (ticks: number) => new Array<number>(ticks).fill(900);
  expect(follow([...low, ...wellAbove(60), ...low]).mailed).toEqual([720]);
  expect(follow([...low, ...wellAbove(61), ...low]).mailed).toEqual([720, 720]);
  expect(follow([...low, ...wellAbove(40), 899, ...wellAbove(40), ...low]).mailed).toEqual([720]);
  expect(follow([...low, ...wellAbove(61)]).watch).toEqual(quietWatch);
});

it('mails once that the balance is used up, after a second reading', () => {
  expect(follow([-1]).mailed).toEqual([]);
  expect(follow([0, 5_000, 0, 5_000]).mailed).toEqual([]);
  const { watch, mailed } = follow([0, -1, -2, -3]);
  expect(mailed).toEqual(['exhausted']);
  expect(watch.exhaustedAt).toBe(TICK_MS);
});

it.each([
  // [what was mailed, remaining minutes after the top-up, what counts as mailed then]
  [5, 2_000, null],
  [5, 1_000, null],
  [5, 899, 720],
  [5, 200, 180],
  [5, 31, 30],
  [5, 38, 60],
  [30, 6, 30],
  [null, 6, null],
])('after a top-up: %s was mailed, %i min are left, so that %s counts as mailed', (mailed, minutes, then) => {
  const watch = readCredit({ ...quietWatch, mailedMinutes: mailed, exhaustedAt: 5 }, reading(minutes));
  expect(watch).toEqual({ ...quietWatch, mailedMinutes: then });
});

it('stays exhausted after a top-up that does not reach zero, and recovers when the balance is above', () => {
  const exhausted = { ...quietWatch, mailedMinutes: 5, pendingMinutes: 0, exhaustedAt: 5 };
  expect(readCredit(exhausted, reading(-1))).toEqual(exhausted);
  expect(readBalance(exhausted, reading(100)).watch.exhaustedAt).toBeNull();
});

it('predicts no end where nothing is used', () => {
  expect(remainingMinutes({ ...reading(1), burnMicroUsdPerHour: 0 })).toBe(Number.POSITIVE_INFINITY);
  expect(remainingMinutes({ ...reading(-1), burnMicroUsdPerHour: 0 })).toBe(0);
});

/** Reads every tick, or only the ticks that `nextReadingAt` asks for. */
function readAll(
  chapters: readonly { balance: number; burn: number; ticks: number }[],
  isLazy: boolean,
): { news: unknown[]; readings: number } {
  const news: unknown[] = [];
  let watch = quietWatch;
  let [tick, readings] = [0, 0];
  for (const { balance, burn, ticks } of chapters) {
    let nextAt = 0;
    for (let passed = 0; passed < ticks; passed++, tick++) {
      const at = tick * TICK_MS;
      // Rounded up, as the balance with one open segment may be.
      const balanceMicroUsd = balance - Math.floor((burn * passed * TICK_MS) / 3_600_000);
      const reading = { at, balanceMicroUsd, burnMicroUsdPerHour: burn };
      if (isLazy && at < nextAt) continue;
      readings += 1;
      const read = readBalance(watch, reading);
      watch = read.watch;
      if (read.news !== null) news.push([at, read.news]);
      nextAt = nextReadingAt(watch, reading, 1);
    }
    news.push(watch);
  }
  return { news, readings };
}

it('mails the same with scheduled readings as with one every 30 s, for any balance and usage [lazy-as-eager]', () => {
  let [eager, lazy] = [0, 0];
  const chapter = fc.record({
    balance: fc.oneof(fc.integer({ min: -5, max: 5 }), fc.integer({ min: 0, max: 60_000_000 })),
    burn: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 30_000_000 })),
    ticks: fc.integer({ min: 1, max: 600 }),
  });
  fc.assert(
    fc.property(fc.array(chapter, { minLength: 1, maxLength: 6 }), (chapters) => {
      const [all, scheduled] = [readAll(chapters, false), readAll(chapters, true)];
      expect(scheduled.news).toEqual(all.news);
      eager += all.readings;
      lazy += scheduled.readings;
    }),
    { numRuns: 300 },
  );
  expect(lazy).toBeLessThan(eager / 20);
});

it('never mails a threshold twice or one above another in an episode, whatever the readings', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 899 }), { maxLength: 300 }), (minutes) => {
      const { mailed } = follow(minutes);
      expect(mailed).toEqual([...new Set(mailed)].sort((a, b) => Number(b) - Number(a)));
    }),
  );
});
