import { beforeEach, describe, expect, it } from 'vitest';
import { isSuspect, judgeVolumes } from './validate-listing.ts';

it.each([
  { missing: 0, expected: 0, isDoubted: false },
  { missing: 0, expected: 5, isDoubted: false },
  // One machine that is gone is gone: nothing tells it from a platform that lies.
  { missing: 1, expected: 1, isDoubted: false },
  { missing: 2, expected: 2, isDoubted: true },
  { missing: 2, expected: 3, isDoubted: false },
  { missing: 3, expected: 3, isDoubted: true },
  { missing: 3, expected: 5, isDoubted: true },
  { missing: 3, expected: 6, isDoubted: false },
  { missing: 50, expected: 100, isDoubted: false },
  { missing: 51, expected: 100, isDoubted: true },
])('a listing that lacks $missing of $expected is doubted: $isDoubted', ({ isDoubted, ...held }) => {
  expect(isSuspect(held, 0.5)).toBe(isDoubted);
});

describe('a listing that lacks three of four volumes that nobody deleted', () => {
  const HOUR_MS = 60 * 60_000;
  const marks = new Map<string, number>();
  const alarms: string[] = [];
  let now = 0;
  let judge: (...refs: string[]) => Promise<boolean>;

  beforeEach(async () => {
    marks.clear();
    alarms.length = 0;
    now = 1_000;
    const tx = {
      marks: {
        put: async (name: string, at: number) => marks.set(name, at),
        remove: async (name: string) => marks.delete(name),
        get: async (name: string) => marks.get(name) ?? null,
      },
    };
    const deps = {
      platform: 'default',
      store: {
        read: { ...tx, volumes: { byOwnerRef: async () => ({ status: 'AVAILABLE' }) } },
        transact: (body: (given: typeof tx) => unknown) => body(tx),
      },
      health: { isUp: true },
      options: { suspectShare: 0.5 },
      clock: { now: () => now },
      log: { error: (_: object, message: string) => void alarms.push(message) },
    } as unknown as Parameters<typeof judgeVolumes>[0];
    const judging = judgeVolumes(deps);
    judge = (...refs) => {
      const items = refs.map((ref) => ({ ref, attachedTo: [], createdAt: 0 }));
      return judging({ answer: 'listed', items }, now);
    };
    await judge('a', 'b', 'c', 'd');
  });

  it('is not believed, with one alarm that names the way out', async () => {
    expect([await judge('a'), await judge('a')]).toEqual([false, false]);
    expect(alarms).toEqual([expect.stringContaining('berth losses accept')]);
    expect(marks.get('volumes_doubted_since')).toBe(1_000);
  });

  it('is believed when losses are accepted, and when they are back', async () => {
    await judge('a');
    marks.set('losses_accepted_until', now + 1);
    expect([await judge('a'), marks.has('volumes_doubted_since')]).toEqual([true, false]);
    await judge('a', 'b', 'c', 'd');
    marks.clear();
    await judge('a');
    expect(await judge('a', 'b', 'c', 'd')).toBe(true);
    expect(marks.has('volumes_doubted_since')).toBe(false);
  });

  it('is believed after an hour in which they did not come back', async () => {
    await judge('a');
    now += HOUR_MS - 1;
    expect(await judge('a')).toBe(false);
    now += 1;
    expect([await judge('a'), await judge('a')]).toEqual([true, true]);
    expect(marks.has('volumes_doubted_since')).toBe(false);
  });
});
