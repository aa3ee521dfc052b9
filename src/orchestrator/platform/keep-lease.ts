import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import { leaseCheckMs, renewBelowMs } from '../../work/lease-time.ts';
import type { Alarms } from '../alarms/alarms.ts';
import type { Store } from '../model/store.ts';
import type { Lease } from '../model/work.ts';

export interface LeaseKeeping {
  store: Pick<Store, 'transact'>;
  platform: string;
  clock: Clock;
  log: Pick<Log, 'warn' | 'error'>;
  alarms: Pick<Alarms, 'raise' | 'end'>;
  options: { leaseMs: number };
  /** Aborted when this process stops. */
  stopping: AbortSignal;
}

/**
 * The lease was lost, or this process stops, while the call is still running. Nothing is written, and the lease is not
 * released.
 */
export class CallUnderWay extends Error {
  override readonly name = 'CallUnderWay';
}

/** How long a call that was given up may run before an alarm is raised, in milliseconds. */
const STUCK_AFTER_MS = 60_000;
/** How long a stopping process waits for a call that was given up, in milliseconds. */
const LAST_WAIT_MS = 1_000;
const STUCK =
  'a call to the platform timed out and is still running: this resource waits until it ends. Check the ' +
  'platform; if its driver hangs, restart this server';

/**
 * Waits until a call that was given up ends, and renews its lease meanwhile. A driver kills its commands at the signal,
 * so the wait is short. A call that does not end keeps its resource busy.
 *
 * @throws {CallUnderWay}
 */
export async function whileLeaseIsKept<T>(
  context: LeaseKeeping,
  lease: Lease,
  ending: Promise<T>,
): Promise<T> {
  const { clock, options, alarms, platform, stopping } = context;
  const { resourceId, kind } = lease;
  const since = clock.now();
  const alarm = { kind: 'call_stuck', subject: resourceId } as const;
  let ended: { value: T } | undefined;
  const noting = ending.then((value) => {
    ended = { value };
  });
  for (;;) {
    const isEndingSoon = lease.until - clock.now() < renewBelowMs(options.leaseMs);
    if (isEndingSoon && !stopping.aborted) await renew(context, lease);
    await eitherOr(noting, clock, leaseCheckMs(options.leaseMs), stopping);
    if (ended === undefined && stopping.aborted) await eitherOr(noting, clock, LAST_WAIT_MS);
    if (ended !== undefined) {
      alarms.end(alarm);
      return ended.value;
    }
    if (stopping.aborted) throw new CallUnderWay(`this server is stopping while a ${kind} is in progress`);
    const overdueMs = clock.now() - since;
    if (overdueMs >= STUCK_AFTER_MS)
      alarms.raise({
        ...alarm,
        platform,
        text: STUCK,
        detail: `${kind}, given up ${Math.round(overdueMs / 1000)} s ago`,
        fields: { resource: resourceId, step: kind },
      });
  }
}

/**
 * Renews the lease. After a failure of the store the caller tries again; the lease may last until then. @throws
 * {CallUnderWay}
 */
async function renew({ store, clock, options, log }: LeaseKeeping, lease: Lease): Promise<void> {
  const until = clock.now() + options.leaseMs;
  try {
    const isHeld = await store.transact((tx) => tx.work.renew(lease, until));
    if (!isHeld) throw new CallUnderWay(`the lease was lost while a ${lease.kind} is in progress`);
    lease.until = until;
  } catch (error) {
    if (error instanceof CallUnderWay) throw error;
    log.warn({ err: error, resource: lease.resourceId }, 'a lease could not be renewed; retrying');
  }
}

/** Waits until `ending` settles, `ms` have passed or `signal` is aborted. */
async function eitherOr(
  ending: Promise<void>,
  clock: Clock,
  ms: number,
  signal?: AbortSignal,
): Promise<void> {
  if (signal?.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = clock.setTimer(ms, resolve);
  const stop = (): void => resolve();
  signal?.addEventListener('abort', stop);
  await Promise.race([ending, promise]);
  signal?.removeEventListener('abort', stop);
  timer.cancel();
}
