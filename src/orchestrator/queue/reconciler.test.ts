import { expect, it } from 'vitest';
import { unstoredAlarms } from '../../../test/support/doubles/alarms.ts';
import type { Timer } from '../../ports/clock.ts';
import { StoreUnavailable } from '../model/store.ts';
import type { ReconcileContext } from '../platform/context.ts';
import { Reconciler } from './reconciler.ts';

const LEASE_MS = 60_000;

/** A reconciler whose store reports a due row and does not let it be claimed. */
async function start(offsetMs: number) {
  const napped = Promise.withResolvers<number>();
  const logged: string[] = [];
  let claims = 0;
  const context = {
    store: {
      isShared: true,
      subscribe: () => () => undefined,
      nextWorkAt: async () => 0,
      claimWork: async () => {
        claims++;
        return [];
      },
    },
    clock: {
      now: () => 1_000,
      offsetMs: () => offsetMs,
      setTimer: (delayMs: number): Timer => {
        napped.resolve(delayMs);
        return { cancel: () => undefined };
      },
    },
    alarms: unstoredAlarms({ now: () => 1_000 }),
    random: { next: () => 0, bytes: (length: number) => Buffer.alloc(length) },
    health: { isUp: true, onRecovery: () => () => undefined },
    log: { error: (_fields: object, message: string) => logged.push(message), info: () => undefined },
    driver: { manifest: { createVisibleWithinMs: 0 } },
    options: { leaseMs: LEASE_MS, maxConcurrentSteps: 8 },
  };
  const reconciler = new Reconciler(context as unknown as ReconcileContext);
  await reconciler.start();
  const napMs = await napped.promise;
  await reconciler.stop();
  return { napMs, claims, logged };
}

it('waits while a due row is locked by another server', async () => {
  expect(await start(0)).toEqual({ napMs: 100, claims: 2, logged: [] });
});

it.each([LEASE_MS / 4 + 1, -LEASE_MS])('claims nothing while its time is %d ms off', async (offsetMs) => {
  const { claims, logged } = await start(offsetMs);
  expect(claims).toBe(0);
  expect(logged).toEqual([expect.stringMatching(/differs too much from the database/)]);
});

it('logs once that the store does not answer, and once that it answers again', async () => {
  const logged: string[] = [];
  const answers = ['fails', 'fails', 'answers', 'answers', 'fails'];
  const ended = Promise.withResolvers<void>();
  const collect = (level: string) => (_fields: object, message: string) =>
    logged.push(`${level}: ${message}`);
  const context = {
    store: {
      subscribe: () => () => undefined,
      nextWorkAt: async () => null,
      claimWork: async ({ resourceKind }: { resourceKind: string }) => {
        if (resourceKind === 'instance' && answers.shift() === 'fails') throw new StoreUnavailable('test');
        return [];
      },
    },
    clock: {
      now: () => 1_000,
      setTimer: (_delayMs: number, wake: () => void): Timer => {
        if (answers.length > 0) queueMicrotask(wake);
        else ended.resolve();
        return { cancel: () => undefined };
      },
    },
    random: { next: () => 0, bytes: (length: number) => Buffer.alloc(length) },
    health: { isUp: true, onRecovery: () => () => undefined },
    log: { error: collect('error'), info: collect('info') },
    driver: { manifest: { createVisibleWithinMs: 0 } },
    options: { leaseMs: LEASE_MS, maxConcurrentSteps: 8 },
  };
  const reconciler = new Reconciler(context as unknown as ReconcileContext);
  await reconciler.start();
  await ended.promise;
  await reconciler.stop();
  const down = 'error: the store does not answer; durable work waits';
  expect(logged).toEqual([down, 'info: the store answers again', down]);
});
