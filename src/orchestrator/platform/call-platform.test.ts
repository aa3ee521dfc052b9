import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import type { ProbeResult } from '../../ports/ssh-probe.ts';
import type { ObservedMachine, Presence, Step } from '../model/platform-driver.ts';
import type { Lease } from '../model/work.ts';
import { callStep, NotCalled, observe, prove } from './call-platform.ts';

function caller() {
  const clock = new VirtualClock(0);
  const refusals: string[] = [];
  return {
    clock,
    refusals,
    options: { callTimeoutMs: 1_000, leaseMs: 4_000 },
    alarms: { raise: () => undefined, end: () => undefined },
    stopping: new AbortController().signal,
    failpoint: () => undefined,
    health: {
      accepted: () => undefined,
      refused: (resource: string, problem: string) => void refusals.push(`${resource}: ${problem}`),
    },
  };
}

type Context = Parameters<typeof callStep>[0];
const lease = (kind: Lease['kind'], until = Number.POSITIVE_INFINITY): Lease =>
  ({ resourceId: 'inst-1', kind, until, fence: 1, token: 't' }) as Lease;
const call = <T>(context: ReturnType<typeof caller>, step: Step<T>, until?: number): Promise<Step<T>> =>
  callStep(context as unknown as Context, lease('stop', until), async () => step);

const machine: ObservedMachine = {
  ref: 'r',
  power: 'failed',
  createdAt: 1,
  note: '{"a":\n1}',
  detail: 'Xid\u0000 79\n',
  host: 'rack\u0000-1\n',
  fault: { finding: 'no\u0000 bridge', remedy: 'add one\ud800' },
  endpoint: { publicIp: '192.0.2.1\n', sshPort: 22, sshUsername: 'ro\u0000ot', privateIp: '10.0.0.1\t' },
};
const clean: ObservedMachine = {
  ref: 'r',
  power: 'failed',
  createdAt: 1,
  note: '{"a":\n1}',
  detail: 'Xid  79',
  host: 'rack -1',
  fault: { finding: 'no  bridge', remedy: 'add one\ufffd' },
  endpoint: { publicIp: '192.0.2.1', sshPort: 22, sshUsername: 'ro ot', privateIp: '10.0.0.1' },
};

describe('text from the platform', () => {
  it('is cleaned on every path; a note is left unchanged', async () => {
    const context = caller();
    expect(await call(context, { outcome: 'done', value: machine })).toEqual({
      outcome: 'done',
      value: clean,
    });
    const failed = { outcome: 'failed', code: 'conflict', sideEffect: 'none', detail: 'a\u0000b' } as const;
    expect(await call(context, failed)).toEqual({ ...failed, detail: 'a b' });
    expect(await observe(context, async () => ({ answer: 'observed', value: machine }))).toEqual({
      answer: 'observed',
      value: clean,
    });
    expect(await observe(context, async () => ({ answer: 'listed', items: [machine] }))).toEqual({
      answer: 'listed',
      items: [clean],
    });
    expect(await observe(context, async () => ({ answer: 'unknown', reason: 'a\nb' }))).toEqual({
      answer: 'unknown',
      reason: 'a b',
    });
    expect(await observe(context, () => Promise.reject(new Error('a\nb')))).toMatchObject({ reason: 'a b' });
    const refused = { ok: false, step: 'banner', detail: 'SSH-\u00072.0' } as const;
    expect(await prove(context, async () => refused)).toEqual({ ...refused, detail: 'SSH- 2.0' });
  });

  it.each([
    [Number.NaN, 1_000],
    [Number.POSITIVE_INFINITY, 1_000],
    [-5, 0],
    [249.5, 250],
    [86_400_000, 600_000],
  ])('with a pause of %d ms is limited to %d ms', async (asked, held) => {
    const pending = { outcome: 'pending', cookie: 'c', pollAfterMs: asked } as const;
    expect(await call(caller(), pending)).toEqual({ ...pending, pollAfterMs: held });
    const failed = { outcome: 'failed', code: 'conflict', sideEffect: 'none', detail: 'x' } as const;
    expect(await call(caller(), { ...failed, retryAfterMs: asked })).toEqual({
      ...failed,
      retryAfterMs: held,
    });
  });

  it.each([
    [
      { phase: ' spawn\ning\u202e', deadlineAt: 7.4 },
      { phase: 'spawn ing', deadlineAt: 7 },
    ],
    [{ phase: 'spawning' }, { phase: 'spawning' }],
    [{ phase: 'spawning', deadlineAt: Number.NaN }, { phase: 'spawning' }],
    [{ phase: 'spawning', deadlineAt: 8.7e15 }, { phase: 'spawning' }],
    [{ phase: '\n', deadlineAt: 7 }, undefined],
  ])('of progress %j becomes %j', async (progress, shown) => {
    const pending = { outcome: 'pending', cookie: 'c', pollAfterMs: 1 } as const;
    expect(await call(caller(), { ...pending, progress })).toEqual({
      ...pending,
      ...(shown !== undefined && { progress: shown }),
    });
  });

  it('about our credentials reaches the platform health', async () => {
    const context = caller();
    await call(context, { outcome: 'failed', code: 'auth', sideEffect: 'none', detail: 'expired' });
    expect(context.refusals).toEqual(['inst-1: the platform refuses our credentials: expired']);
  });
});

describe('a lease that ends before a call would', () => {
  it.each([
    [1_249, 0],
    [1_250, 1],
    [undefined, 1],
  ])('(until %s) calls %d times', async (until, calls) => {
    const context = caller();
    let made = 0;
    const calling = callStep(context as unknown as Context, lease('create', until), async () => {
      made++;
      return { outcome: 'done', value: null };
    });
    if (calls === 0) await expect(calling).rejects.toThrow(NotCalled);
    else await calling;
    expect(made).toBe(calls);
  });

  it('also stops a holder that was paused past it [call-after-pause-refused]', async () => {
    const context = caller();
    const until = context.clock.now() + 60_000;
    await context.clock.advance(61_000);
    const done = { outcome: 'done', value: null } as const;
    await expect(call(context, done, until)).rejects.toThrow(NotCalled);
  });

  it('stops a holder on a platform that another database has taken [no-call-while-taken]', async () => {
    const context = caller();
    Object.assign(context.health, { isTaken: true });
    await expect(call(context, { outcome: 'done', value: null })).rejects.toThrow(NotCalled);
  });

  it('also stops a holder whose clock is behind the others', async () => {
    const context = caller();
    Object.assign(context.clock, { offsetMs: () => -60_000 });
    const done = { outcome: 'done', value: null } as const;
    await expect(call(context, done, context.clock.now() + 60_000)).rejects.toThrow(NotCalled);
  });
});

it('a lease that would end soon is renewed as soon as its call is given up, and then until the call has ended [lease-renewed-at-once]', async () => {
  const context = caller();
  const { clock } = context;
  const held = lease('create', 1_300);
  const renewals: [at: number, until: number][] = [];
  const renew = async (_: Lease, until: number): Promise<boolean> => renewals.push([clock.now(), until]) > 0;
  const store = { transact: (body: (tx: object) => unknown) => body({ work: { renew } }) };
  const ending = Promise.withResolvers<Step<null>>();
  const calling = callStep({ ...context, store } as unknown as Context, held, () => ending.promise);
  await clock.advance(1_000);
  expect([renewals, held.until]).toEqual([[[1_000, 5_000]], 5_000]);
  await clock.advance(4_000);
  expect(renewals.map(([at]) => Math.round(at))).toEqual([1_000, 3_667]);
  ending.resolve({ outcome: 'done', value: null });
  expect(await calling).toEqual({ outcome: 'done', value: null });
});

describe('a malformed answer', () => {
  const endpoint = { publicIp: null, sshPort: 22, sshUsername: 'root' };
  it.each<[string, unknown]>([
    ['is missing', undefined],
    ['says something else', { answer: 'perhaps' }],
    ['lists nothing at all', { answer: 'listed' }],
    ['lists a hole', { answer: 'listed', items: [machine, null] }],
    ['lists what has no ref', { answer: 'listed', items: [{ ...machine, ref: undefined }] }],
    ['lists a ref with a NUL', { answer: 'listed', items: [{ ...machine, ref: 'r\0' }] }],
    ['lists a ref with half a surrogate pair', { answer: 'listed', items: [{ ...machine, ref: 'r\ud800' }] }],
    ['lists a detail that is no text', { answer: 'listed', items: [{ ...machine, detail: null }] }],
    ['shows an address that is no text', { answer: 'observed', value: { ...machine, endpoint } }],
    ['shows no machine', { answer: 'observed', value: null }],
    ['gives no reason', { answer: 'unknown' }],
  ])('is unknown: one that %s', async (_what, answer) => {
    expect(await observe(caller(), async () => answer as Presence<unknown>)).toEqual({
      answer: 'unknown',
      reason: expect.any(String),
    });
  });

  it.each<[string, unknown]>([
    ['is missing', undefined],
    ['has no outcome', { outcome: 'maybe' }],
    ['shows an address that is no text', { outcome: 'done', value: { ...machine, endpoint } }],
    ['has a cookie with a NUL', { outcome: 'pending', cookie: 'c\0', pollAfterMs: 1 }],
    ['fails without a word', { outcome: 'failed', code: 'conflict', sideEffect: 'none' }],
  ])('to a step leaves its outcome unknown: one that %s', async (_what, step) => {
    expect(await call(caller(), step as Step<unknown>)).toMatchObject({
      outcome: 'failed',
      code: 'unknown_outcome',
      sideEffect: 'possible',
    });
  });

  it('to a proof proves nothing', async () => {
    const nothing = undefined as unknown as ProbeResult;
    expect(await prove(caller(), async () => nothing)).toMatchObject({ ok: false, step: 'connect' });
  });
});

it('a call that does not answer in time, or rejects, has an unknown outcome', async () => {
  const context = caller();
  const waiting = callStep(
    context as unknown as Context,
    lease('stop'),
    ({ signal }) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('it was killed')))),
  );
  await context.clock.advance(1_000);
  expect(await waiting).toMatchObject({ code: 'unknown_outcome', sideEffect: 'possible' });
  expect(context.clock.pendingTimers).toBe(0);
});
