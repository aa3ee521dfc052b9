import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { VolumePolicy } from '../model/options.ts';
import type { BalanceWatch } from '../model/people.ts';
import { quietWatch, readBalance, readCredit } from './balance-watch.ts';
import { areVolumesDue, dueNotice } from './watch-volumes.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const policy: VolumePolicy = { keepMs: 7 * DAY, noticesMs: [DAY, 3 * DAY] };
const exhausted: BalanceWatch = { ...quietWatch, exhaustedAt: 0 };

/** Reads the watch at each of these times. Returns the mails and the time when the deletion begins. */
function follow(times: readonly number[], from: BalanceWatch = exhausted, by: VolumePolicy = policy) {
  let watch = from;
  const mailed: { at: number; deleteAt: number; noticeMs: number }[] = [];
  let deletedAt: number | null = null;
  for (const at of times) {
    const notice = dueNotice(watch, by, at);
    if (notice !== null) {
      mailed.push({ at, ...notice });
      watch = { ...watch, volumesDeleteAt: notice.deleteAt, volumesNoticeMs: notice.noticeMs };
    }
    if (deletedAt === null && areVolumesDue(watch, at)) deletedAt = at;
  }
  return { mailed, deletedAt, watch };
}

const hours = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, hour) => (from + hour) * HOUR);

it('mails at zero, three days before, a day before, and when it deletes, seven days after the first mail', () => {
  const { mailed, deletedAt } = follow(hours(0, 200));
  expect(mailed.map(({ at }) => at / DAY)).toEqual([0, 4, 6, 7]);
  expect(mailed.map(({ deleteAt }) => deleteAt / DAY)).toEqual([7, 7, 7, 7]);
  expect(deletedAt).toBe(7 * DAY);
});

it('counts the days from the first mail where the balance was used up long before', () => {
  const { mailed, deletedAt } = follow(hours(60 * 24, 70 * 24));
  expect(mailed[0]).toEqual({ at: 60 * DAY, deleteAt: 67 * DAY, noticeMs: 7 * DAY });
  expect(deletedAt).toBe(67 * DAY);
});

it('counts the days from the zero balance where a process whose clock is behind mails first', () => {
  expect(dueNotice({ ...quietWatch, exhaustedAt: 10 * DAY }, policy, 9 * DAY)?.deleteAt).toBe(17 * DAY);
});

it('postpones the deletion by the delay of each mail that was due while the server was off', () => {
  const { mailed, deletedAt } = follow([0, ...hours(30 * 24, 40 * 24)]);
  expect(mailed.map(({ at }) => at / DAY)).toEqual([0, 30, 32, 33]);
  expect(deletedAt).toBe(33 * DAY);
});

it('keeps the announced date where the policy becomes shorter', () => {
  const { watch } = follow([0]);
  expect(follow(hours(1, 200), watch, { keepMs: DAY, noticesMs: [] }).deletedAt).toBe(7 * DAY);
});

it('mails nothing and deletes nothing while there is a balance', () => {
  expect(follow(hours(0, 1_000), quietWatch)).toMatchObject({ mailed: [], deletedAt: null });
});

it('resets when money comes back, and starts over', () => {
  const { watch } = follow(hours(0, 190));
  expect(areVolumesDue(watch, 8 * DAY)).toBe(true);
  const reading = { at: 8 * DAY, balanceMicroUsd: 1, burnMicroUsdPerHour: 1 };
  for (const after of [readCredit(watch, reading), readBalance(watch, reading).watch]) {
    expect(areVolumesDue(after, 100 * DAY)).toBe(false);
    expect(dueNotice({ ...after, exhaustedAt: 9 * DAY }, policy, 9 * DAY)?.deleteAt).toBe(16 * DAY);
  }
  // A payment that does not bring the balance above zero changes nothing.
  expect(readCredit(watch, { ...reading, balanceMicroUsd: 0 })).toEqual(watch);
});

it('never deletes before the announced time, or with less notice than the policy requires, for any clock', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 60 * 24 }), { maxLength: 300 }),
      fc.uniqueArray(fc.integer({ min: 1, max: 9 }), { maxLength: 4 }),
      (times, days) => {
        const by = { keepMs: 5 * DAY, noticesMs: days.map((day) => day * DAY) };
        const at = times.toSorted((a, b) => a - b).map((hour) => hour * HOUR);
        const { mailed, deletedAt } = follow(at, exhausted, by);
        for (const mail of mailed)
          expect(deletedAt === null || deletedAt >= mail.at + mail.noticeMs - HOUR).toBe(true);
        if (deletedAt !== null)
          expect(mailed.map(({ noticeMs }) => noticeMs / DAY)).toEqual(
            [5, ...days.filter((day) => day < 5), 0].toSorted((a, b) => b - a),
          );
      },
    ),
  );
});
