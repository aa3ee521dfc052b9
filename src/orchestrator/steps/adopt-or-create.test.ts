import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import type { Presence } from '../model/platform-driver.ts';
import type { Lease } from '../model/work.ts';
import { findEarlierCreate, isRefused, waitForEarlier } from './adopt-or-create.ts';
import type { StepContext } from './context.ts';
import { retryFailed } from './fail.ts';

const STARTED_AT = 1_000;
const VISIBLE_MS = 240_000;

const context = {
  clock: new VirtualClock(2_000),
  startedAt: STARTED_AT,
  options: { callTimeoutMs: 1_000 },
  driver: { manifest: { createVisibleWithinMs: VISIBLE_MS } },
} as unknown as StepContext;

const lease = (changes: Partial<Lease>): Lease =>
  ({ attempt: 1, cookie: null, lastError: null, ...changes }) as Lease;
/** The claim after the wait that precedes the attempt. */
const waited = (attempt: number): Lease => {
  const next = waitForEarlier(lease({ attempt }), VISIBLE_MS);
  if (next.step !== 'again') throw new Error('it does not wait');
  const { problem: lastError = null, waitedAttempt = null } = next;
  return lease({ attempt: (next.attempt ?? attempt) + 1, lastError, waitedAttempt });
};
/** The claim after refused credentials of a frozen platform, which are not counted. An earlier call was accepted. */
const refusedLogin = (() => {
  const auth = { outcome: 'failed', code: 'auth', sideEffect: 'none', detail: '401' } as const;
  const frozen = { health: { isUp: false } } as unknown as StepContext;
  const { attempt = 1, problem: lastError = null } = retryFailed(frozen, lease({ cookie: 'c' }), auth);
  return lease({ attempt: attempt + 1, lastError });
})();
const young = { ownerRef: 'r', createdAt: STARTED_AT, host: null };
const old = { ownerRef: 'r', createdAt: STARTED_AT - 1, host: null };

describe('before a create is sent', () => {
  it.each([
    ['a first attempt looks for nothing', lease({}), young, 'send'],
    ['a call with a cookie goes on', lease({ attempt: 7, cookie: 'c', lastError: 'x' }), old, 'send'],
    ['an attempt that follows another looks', lease({ attempt: 2 }), young, VISIBLE_MS],
    ['so does one of a row that is older than the process', lease({}), old, VISIBLE_MS],
    ['so does one whose login was refused after an accepted call', refusedLogin, young, VISIBLE_MS],
    ['a caller that has waited since sends', lease({ lastError: 'may turn up' }), young, 0],
    ['also for an older row', lease({ lastError: 'may turn up' }), old, 0],
    ['so does a caller that has waited before a later attempt', waited(7), young, 0],
    ['but not twice on one wait, either', { ...waited(7), attempt: 8 }, young, VISIBLE_MS],
    ['but not twice on one wait', lease({ attempt: 2, lastError: 'may turn up' }), young, VISIBLE_MS],
  ])('%s', async (_name, claimed, record, expected) => {
    let looks = 0;
    const get = async (): Promise<Presence<never>> => {
      looks++;
      return { answer: 'gone' };
    };
    const before = await findEarlierCreate(context, claimed, record, { get });
    const wanted = expected === 'send' ? { answer: 'send' } : { answer: 'absent', waitMs: expected };
    expect([before, looks]).toEqual([wanted, expected === 'send' ? 0 : 1]);
  });

  it.each([
    ['was placed on no host was not sent', null, 'send'],
    ['was placed may have been sent', 'kvm-1', 'gone'],
  ])('a repeated one that %s, where the driver places', async (_name, host, expected) => {
    const places = {
      get: async () => ({ answer: 'unknown', reason: 'a host is silent' }) as const,
      place: () => undefined,
    };
    const before = await findEarlierCreate(context, lease({ attempt: 2 }), { ...young, host }, places);
    expect(before.answer).toBe(expected === 'send' ? 'send' : 'unknown');
  });

  it.each<Presence<{ ref: string }>>([
    { answer: 'observed', value: { ref: 'r' } },
    { answer: 'unknown', reason: 'no answer' },
  ])('the observation is returned unchanged: %j', async (found) => {
    expect(
      await findEarlierCreate(context, lease({ attempt: 2 }), young, { get: async () => found }),
    ).toEqual(found);
  });
});

const failed = { outcome: 'failed', detail: 'd' } as const;

describe('a create that failed', () => {
  it.each([
    ['capacity', 'none', true],
    ['capacity', 'certain', true],
    ['capacity', 'possible', false],
    ['unknown_outcome', 'none', false],
    ['transient', 'none', false],
  ] as const)('with %s and a side effect that is %s is final: %s', (code, sideEffect, isFinal) => {
    expect(isRefused({ ...failed, code, sideEffect })).toBe(isFinal);
  });
});
