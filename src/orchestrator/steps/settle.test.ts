import { beforeEach, describe, expect, it } from 'vitest';
import { unstoredAlarms } from '../../../test/support/doubles/alarms.ts';
import { account, claim, dueWork, instance, now } from '../../../test/support/rows/orchestrator-rows.ts';
import { openTestStore } from '../../../test/support/rows/stores.ts';
import { transition } from '../instances/transition.ts';
import { CREATE_IS_OPEN } from '../model/platform-resource.ts';
import type { InstanceRecord } from '../model/records.ts';
import type { Store, Transaction } from '../model/store.ts';
import type { Lease, Work } from '../model/work.ts';
import type { ReconcileContext } from '../platform/context.ts';
import type { VisibilityUpdate } from '../platform/visibility.ts';
import { finish, type Next, releaseLease, settleInstance, whilePending } from './settle.ts';

const WINDOW_MS = 1_000;
const { spec } = instance('a');
let store: Store;
let health: { isUp: boolean; trustedSince: number };
let warnings: object[];
let errors: object[];
let alarms: ReturnType<typeof unstoredAlarms>;

beforeEach(async () => {
  store = await openTestStore();
  health = { isUp: true, trustedSince: 0 };
  warnings = [];
  errors = [];
  alarms = unstoredAlarms({ now: () => now });
  await store.transact(async (tx) => {
    await tx.credentials.insertAccount(account);
    await tx.instances.insert({ ...instance('a'), spec: { ...spec, onlineWithinMs: WINDOW_MS } });
  });
});

function context(): ReconcileContext {
  const log = {
    warn: (fields: object) => void warnings.push(fields),
    error: (fields: object) => void errors.push(fields),
    info: () => undefined,
  };
  return {
    ...{
      store,
      health,
      log,
      clock: { now: () => now },
      alarms,
      options: { leaseMs: 1_000 },
      failpoint: () => undefined,
    },
  } as unknown as ReconcileContext;
}

const put = (changes: Partial<Work> = {}) =>
  store.transact((tx) => tx.work.put({ ...dueWork, resourceId: 'a', ...changes }));

async function claimed(at = now): Promise<Lease> {
  const [lease] = await store.claimWork({ ...claim, now: at, leaseUntil: at + 1_000 });
  if (lease === undefined) throw new Error('there was nothing to claim');
  return lease;
}

/** Settles with an outcome that writes the row. Returns how often it was decided. */
async function settle(lease: Lease, next: Next, visibility?: VisibilityUpdate): Promise<number> {
  let decisions = 0;
  await settleInstance(
    context(),
    lease,
    async (tx, record) => {
      decisions++;
      await transition(tx, record, 'ERROR', now, { error: 'as the test says' });
      return next;
    },
    visibility && { visibility },
  );
  return decisions;
}

const status = async () => (await store.read.instances.byId('a'))?.status;
const work = () => store.read.work.of('a');

describe('a step that returns', () => {
  it('writes its decision and the next step', async () => {
    await put();
    expect(await settle(await claimed(), { step: 'destroy', afterMs: 5 })).toBe(1);
    expect([await status(), warnings]).toEqual(['ERROR', []]);
    expect(await work()).toMatchObject({ kind: 'destroy', attempt: 0, notBefore: now + 5 });
    expect(await claimed(now + 5)).toMatchObject({ kind: 'destroy', attempt: 1 });
  });

  it.each([
    ['that the platform has begun ends at the deadline', 'c', 7, 9_000, 7],
    ['that the platform has begun ends before the deadline', 'c', 7, 3, 3],
    ['that is past its deadline is kept', 'c', -7, 9_000, 9_000],
    ['without a deadline is kept', 'c', null, 9_000, 9_000],
    ['after a failure is kept beyond the deadline', undefined, 7, 9_000, 9_000],
  ])('a pause of a step %s', async (_name, cookie, deadlineMs, afterMs, expectedMs) => {
    await put({ deadlineAt: deadlineMs === null ? null : now + deadlineMs });
    await settle(await claimed(), { step: 'again', afterMs, cookie });
    expect(await work()).toMatchObject({ notBefore: now + expectedMs });
  });

  it.each([
    ['to another holder', async () => void (await claimed(now + 1_000))],
    [
      'to another holder, who has finished',
      async () => {
        const other = await claimed(now + 1_000);
        await store.transact((tx) => tx.work.finish(other));
      },
    ],
  ])(
    'writes nothing, and decides nothing, after its lease was lost %s [settle-after-lost-lease]',
    async (_name, recordLoss) => {
      await put();
      const lease = await claimed();
      await recordLoss();
      const before = [await store.read.instances.byId('a'), await work()];
      expect(await settle(lease, { step: 'destroy' }, () => null)).toBe(0);
      expect([await store.read.instances.byId('a'), await work()]).toEqual(before);
      expect(warnings).toEqual([{ instance: 'a', account: expect.any(String), step: 'create' }]);
    },
  );

  it('leaves work that a use case put meanwhile to that use case', async () => {
    await put();
    const lease = await claimed();
    await put({ kind: 'destroy', deadlineAt: now + 7 });
    expect(await settle(lease, finish)).toBe(0);
    expect(await status()).toBe('PROVISIONING');
    expect(await work()).toMatchObject({ kind: 'destroy', deadlineAt: now + 7, cookie: null, attempt: 0 });
    expect((await store.read.instances.byId('a'))?.createOpenUntil).toBe(CREATE_IS_OPEN);
  });

  it('tells a use case that put other work meanwhile how its create ended', async () => {
    await put();
    const lease = await claimed();
    await put({ kind: 'destroy' });
    await settle(lease, finish, () => 7);
    expect(await work()).toMatchObject({ kind: 'destroy' });
    expect(await store.read.instances.byId('a')).toMatchObject({
      status: 'PROVISIONING',
      createOpenUntil: 7,
    });
  });

  it.each<[string, (tx: Transaction, record: InstanceRecord) => Promise<unknown>, Partial<InstanceRecord>]>([
    ['its outcome', (tx, record) => transition(tx, record, 'ERROR', now), { status: 'ERROR' }],
    ['nothing else', async () => undefined, { status: 'PROVISIONING' }],
  ])('writes its finding about visibility once, with %s', async (_what, write, written) => {
    await put();
    const { version = 0 } = (await store.read.instances.byId('a')) ?? {};
    const decide = (tx: Transaction, record: InstanceRecord) => write(tx, record).then(() => finish);
    await settleInstance(context(), await claimed(), decide, { visibility: () => 7 });
    expect(await store.read.instances.byId('a')).toMatchObject({
      ...written,
      createOpenUntil: 7,
      version: version + 1,
    });
  });

  it('gives back work that a use case put meanwhile, without its own cookie and pause', async () => {
    await put();
    const lease = await claimed();
    await put({ kind: 'destroy' });
    await releaseLease(context(), lease, {
      cookie: 'of-the-create',
      notBefore: now + 9_000,
      lastError: 'broken',
    });
    expect(await claimed()).toMatchObject({ kind: 'destroy', cookie: null, lastError: null });
  });
});

describe('while the platform is not trusted', () => {
  it.each([
    ['create', { step: 'destroy' }],
    ['destroy', finish],
  ] as const)(
    'a %s concludes nothing: it continues when the platform is trusted again',
    async (kind, next) => {
      await put({ kind });
      const lease = await claimed();
      health.isUp = false;
      await settle(lease, next);
      expect(await status()).toBe('PROVISIONING');
      expect(await work()).toMatchObject({
        kind,
        notBefore: now,
        lastError: expect.stringMatching(/is not trusted now/),
      });
      health.isUp = true;
      await settle(await claimed(), next);
      expect([await status(), (await work())?.kind]).toEqual([
        'ERROR',
        next.step === 'finish' ? undefined : 'destroy',
      ]);
    },
  );

  it('a result that ends nothing is still written', async () => {
    await put();
    health.isUp = false;
    await settle(await claimed(), { step: 'again', afterMs: 3, cookie: 'c' });
    expect([await status(), await work()]).toMatchObject([
      'ERROR',
      { kind: 'create', cookie: 'c', notBefore: now + 3, attempt: 0 },
    ]);
  });
});

const pending = { outcome: 'pending', cookie: 'c', pollAfterMs: 0 } as const;
const wait = async (next: Next): Promise<Lease> => {
  const lease = await claimed();
  await settleInstance(context(), lease, async () => next);
  return lease;
};

it('an attempt ends with its failure, not with a call that the platform accepts [attempts-that-fail]', async () => {
  await put();
  const failed: Next = { step: 'again', afterMs: 0, problem: 'transient: no' };
  const attempts: number[] = [];
  for (const next of [whilePending(pending), failed, whilePending(pending), whilePending(pending), failed])
    attempts.push((await wait(next)).attempt);
  expect(attempts).toEqual([1, 1, 2, 2, 2]);
  expect((await claimed()).attempt).toBe(3);
});

it.each<[string, Partial<Work>, Next, string[]]>([
  [
    'fails',
    {},
    { step: 'again', afterMs: 0, problem: 'connect: refused' },
    ['verify, attempt 1: connect: refused'],
  ],
  ['is pending', {}, whilePending(pending), ['verify, attempt 1: the platform has not finished it']],
  ['has more than half of its time left', { deadlineAt: now + WINDOW_MS / 2 + 1 }, whilePending(pending), []],
  ['has no window', { kind: 'observe' }, whilePending(pending), []],
])(
  'a step that %s raises an alarm once half of its window is over [stuck-step]',
  async (_what, of, next, texts) => {
    await put({ kind: 'verify', deadlineAt: now + WINDOW_MS / 2, ...of });
    await wait(next);
    expect(alarms.listOpen()).toMatchObject(
      texts.map((text) => ({ kind: 'step_failing', subject: 'a', text: expect.stringContaining(text) })),
    );
    await wait(finish);
    expect(alarms.listOpen()).toEqual([]);
  },
);

describe('the progress of a platform', () => {
  const progress = async () => (await work())?.progress;
  const overdue = { phase: 'spawning', deadlineAt: now - 1 };

  it('keeps when its phase began, until another phase', async () => {
    await put();
    const lease = await claimed();
    const begun = {
      cookie: null,
      notBefore: now,
      lastError: null,
      progress: { phase: 'spawning', since: now - 5 },
    };
    await store.transact((tx) => tx.work.release(lease, begun));
    await wait(whilePending({ ...pending, progress: { phase: 'spawning', deadlineAt: now + 9 } }));
    expect(await progress()).toEqual({ phase: 'spawning', since: now - 5, deadlineAt: now + 9 });
    await wait(whilePending({ ...pending, progress: { phase: 'networking' } }));
    expect(await progress()).toEqual({ phase: 'networking', since: now });
  });

  it('is kept after a failure, and ends with a pending answer that does not give it', async () => {
    await put();
    await wait(whilePending({ ...pending, progress: overdue }));
    await wait({ step: 'again', afterMs: 0, problem: 'transient: no answer' });
    expect(await progress()).toMatchObject(overdue);
    expect(alarms.listOpen()).toHaveLength(1);
    await wait(whilePending(pending));
    expect(await progress()).toBeNull();
  });

  it.each<[string, Next]>([
    [
      'its phase has more time',
      whilePending({ ...pending, progress: { phase: 'spawning', deadlineAt: now + 1 } }),
    ],
    ['another phase begins', whilePending({ ...pending, progress: { phase: 'networking' } })],
    ['the step ends', { step: 'verify' }],
    ['the work ends', finish],
  ])('raises an alarm when it is overdue, until %s', async (_when, next) => {
    await put();
    await wait(whilePending({ ...pending, progress: { ...overdue, deadlineAt: now + 1 } }));
    expect(alarms.listOpen()).toEqual([]);
    await wait(whilePending({ ...pending, progress: overdue }));
    const at = new Date(now).toISOString();
    const due = new Date(now - 1).toISOString();
    expect(alarms.listOpen()).toMatchObject([
      {
        kind: 'phase_overdue',
        subject: 'a',
        text: expect.stringContaining(`(create: “spawning” since ${at}, due ${due})`),
      },
    ]);
    expect(errors).toMatchObject([{ instance: 'a', step: 'create', phase: 'spawning' }]);
    await wait(next);
    expect(alarms.listOpen()).toEqual([]);
  });
});
