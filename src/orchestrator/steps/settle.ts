import { isClockInSync } from '../../work/lease-time.ts';
import { amend } from '../instances/transition.ts';
import { type Attempt, isRef } from '../model/attempt.ts';
import type { Progress, Step } from '../model/platform-driver.ts';
import {
  type InstanceRecord,
  instanceLogNames,
  type VolumeRecord,
  volumeLogNames,
} from '../model/records.ts';
import { lockInstances, lockVolumesOf, rowOf } from '../model/rows.ts';
import type { Transaction } from '../model/store.ts';
import { StepTrace } from '../model/telemetry.ts';
import type { Lease, LeaseCheck, Work, WorkProgress } from '../model/work.ts';
import type { ReconcileContext, Recording } from '../platform/context.ts';
import type { VisibilityUpdate } from '../platform/visibility.ts';
import { addToHistory, reportStep, type Settled, underWayMs } from './report-step.ts';

/** The continuation after a step. */
export type Next =
  /** Nothing is left to do. */
  | { step: 'finish'; because?: string }
  | Again
  /** Another step follows. `because`: why Berth itself stops or removes the machine. */
  | { step: Work['kind']; deadlineAt?: number | null; afterMs?: number; because?: string };

/**
 * The same step runs again. `attempt` resets the count, if this claim must not count. `isAlarm`: the step keeps
 * failing, so the operator gets an alarm. `progress`: what the platform says; null if it says nothing. Without it, the
 * last progress is kept, such as after a lost answer.
 */
export interface Again {
  step: 'again';
  afterMs: number;
  cookie?: string;
  problem?: string;
  because?: string;
  isAlarm?: boolean;
  attempt?: number;
  waitedAttempt?: number;
  isHeld?: boolean;
  progress?: Progress | null;
}

/** The continuation of a pending call. `cookie` is what the step stores, if it adds to the driver's cookie. */
export function whilePending(
  { cookie: given, pollAfterMs, progress }: Extract<Step<unknown>, { outcome: 'pending' }>,
  cookie: string = given,
): Again {
  return { step: 'again', afterMs: pollAfterMs, cookie, progress: progress ?? null };
}

export const finish: Next = { step: 'finish' };

/** The platform or the clock is not trusted, and the step would end a resource. */
class Frozen extends Error {
  override readonly name = 'Frozen';
}

/**
 * Decides how a step continues, from the locked row and the lease with its current deadline, which an outage may have
 * moved. It may run again with another row: it must only read, decide, write and log.
 */
export type Decide<Row> = (tx: Transaction, row: Row, lease: Lease) => Promise<Next>;

/** Data of a step besides the row that it writes. */
interface Settling {
  /** The new visibility of the resource. Written even if a use case has put other work meanwhile. */
  visibility?: VisibilityUpdate | undefined;
  /** Instances that `decide` reads and writes besides the volume. */
  instanceIds?: readonly string[];
}

/**
 * Writes the outcome of a step in one transaction, which locks the instance and then checks the lease. A lost lease
 * writes nothing. If a use case has put other work, that work takes over. While the platform is not trusted, nothing
 * final is written.
 */
export async function settleInstance(
  context: Recording,
  lease: Lease,
  decide: Decide<InstanceRecord>,
  { visibility = nothing }: Pick<Settling, 'visibility'> = {},
): Promise<void> {
  await settle(context, lease, decide, async (tx) => {
    // Both queries are sent in this order, without waiting in between: PostgreSQL answers them in one round trip.
    const [rows, check] = await Promise.all([lockInstances(tx, [lease.resourceId]), tx.work.check(lease)]);
    const record = rows.get(lease.resourceId);
    if (record === undefined) throw new Error(`work for an instance without a row: ${lease.resourceId}`);
    const createOpenUntil = visibility(record.createOpenUntil);
    const isChanged = createOpenUntil !== record.createOpenUntil;
    const row = isChanged ? { ...record, createOpenUntil } : record;
    return {
      check,
      names: instanceLogNames(record),
      row,
      windowMs: record.spec.onlineWithinMs,
      write: async () => {
        if (isChanged && !tx.instances.hasWritten(row.id)) await amend(tx, row, context.clock.now(), {});
      },
    };
  });
}

/** Like {@link settleInstance}, for a volume and the instances involved. */
export async function settleVolume(
  context: Recording,
  lease: Lease,
  decide: Decide<VolumeRecord>,
  { instanceIds = [], visibility = nothing }: Settling = {},
): Promise<void> {
  await settle(context, lease, decide, async (tx) => {
    await lockInstances(tx, instanceIds);
    const record = (await lockVolumesOf(tx, instanceIds, lease.resourceId)).get(lease.resourceId);
    if (record === undefined) throw new Error(`work for a volume without a row: ${lease.resourceId}`);
    const createOpenUntil = visibility(record.createOpenUntil);
    const isChanged = createOpenUntil !== record.createOpenUntil;
    const row = isChanged ? { ...record, createOpenUntil } : record;
    const check = await tx.work.check(lease);
    if (isChanged && check.state !== 'lost') await tx.volumes.update(row);
    return { check, names: volumeLogNames(record), row };
  });
}

/** Like {@link settleInstance}, for an earlier attempt to make an instance or a volume. */
export async function settleAttempt(
  context: Recording,
  lease: Lease,
  decide: Decide<Attempt>,
): Promise<void> {
  await settle(context, lease, decide, async (tx) => {
    const attempt = await tx.attempts.byRef(lease.resourceId);
    if (attempt === null) throw new Error(`work for an attempt without a row: ${lease.resourceId}`);
    return {
      check: await tx.work.check(lease),
      names: { ref: attempt.ref, [attempt.resourceKind]: attempt.resourceId },
      row: attempt,
    };
  });
}

/** Releases the lease of a step without an outcome. `later` says how the same step continues. */
export async function releaseLease(
  { store }: Pick<ReconcileContext, 'store'>,
  lease: Lease,
  later?: Pick<Work, 'cookie' | 'notBefore' | 'lastError'>,
): Promise<void> {
  await store.transact(async (tx) => {
    if (isRef(lease.resourceId)) await tx.attempts.byRef(lease.resourceId);
    else await rowOf(tx, lease.resourceKind, lease.resourceId);
    // Work that a use case has put meanwhile is another step. Neither the cookie nor the pause applies to it.
    const isHeld = (await tx.work.check(lease)).state === 'held';
    await tx.work.release(lease, isHeld ? later : undefined);
  });
}

/** The locked row and the state of the lease. */
interface Locked<Row> {
  check: LeaseCheck;
  /** The common fields of its log lines. */
  names: object;
  /** The row with its new visibility. */
  row: Row;
  /** The time in which an instance must be ONLINE. */
  windowMs?: number;
  /** Writes the row, whatever work follows, unless it was written with the outcome. */
  write?(): Promise<void>;
}

const nothing: VisibilityUpdate = (known) => known;
const NOT_SETTLED: Settled = { next: finish, progress: null };

async function settle<Row>(
  context: Recording,
  claimed: Lease,
  decide: Decide<Row>,
  lock: (tx: Transaction) => Promise<Locked<Row>>,
): Promise<void> {
  const { store, clock, health, log, failpoint, trace = new StepTrace(clock.now()) } = context;
  let names: object = {};
  let lease = claimed;
  let settled: Settled = NOT_SETTLED;
  const writing = store.transact(async (tx) => {
    settled = NOT_SETTLED;
    trace.begin();
    const locked = await lock(tx);
    const { check, row, write } = locked;
    names = locked.names;
    if (check.state === 'lost') return check.state;
    if (check.state === 'held') {
      lease = { ...claimed, deadlineAt: check.deadlineAt };
      const next = await decide(tx, row, lease);
      const isSure = health.isUp && isClockInSync(clock, context.options);
      if (!isSure && isConclusion(lease, next)) throw new Frozen();
      await applyNext(context, tx, lease, next);
      if (lease.resourceKind === 'instance' && !isRef(lease.resourceId))
        await addToHistory(context, tx, lease, next);
      settled = { next, windowMs: locked.windowMs, progress: toProgress(lease, next, clock.now()) };
      trace.settle(next);
    } else await tx.work.release(claimed);
    await write?.();
    return check.state;
  });
  const state = await writing.catch(async (error) => {
    if (!(error instanceof Frozen)) throw error;
    const lastError = 'the platform or the clock is not trusted now: no decision is made';
    await releaseLease(context, claimed, { cookie: claimed.cookie, notBefore: clock.now(), lastError });
  });
  if (state === 'lost')
    log.warn(
      { ...names, step: claimed.kind },
      'a step returned after its lease was lost; nothing was written',
    );
  if (state === 'held') reportStep(context, lease, names, settled);
  failpoint(`${claimed.kind}:settled`);
}

/** The progress of the step after `next`: its phase began when it was first reported. */
function toProgress({ progress: known }: Lease, next: Next, now: number): WorkProgress | null {
  if (next.step !== 'again') return null;
  const { progress = known } = next;
  if (progress === null) return null;
  return { ...progress, since: progress.phase === known?.phase ? known.since : now };
}

/**
 * Whether the step ends a resource: its machine or volume is destroyed, kept or released next, or that has just
 * finished.
 */
function isConclusion({ kind }: Lease, { step }: Next): boolean {
  if (step === 'finish') return kind === 'destroy' || kind === 'release';
  return step === 'destroy' || step === 'hold' || step === 'release';
}

/**
 * A step without a deadline is not repeated before this share of its time has passed again. Longer than `mostMs` it need
 * not wait: Incus forgets after 5 s how an operation ended.
 */
const REPEAT_AFTER = { share: 0.05, mostMs: 3_000 };

async function applyNext(context: Recording, tx: Transaction, lease: Lease, next: Next): Promise<void> {
  const now = context.clock.now();
  if (next.step === 'finish') return tx.work.finish(lease);
  if (next.step !== 'again') {
    const { step: kind, afterMs = 0, deadlineAt = null } = next;
    return tx.work.replace(lease, { kind, notBefore: now + afterMs, deadlineAt });
  }
  const { cookie = null, problem = null, waitedAttempt = null, isHeld = false } = next;
  // An attempt ends when it has failed, not when the platform has accepted a call: the next call continues it.
  const isContinued = cookie !== null && problem === null;
  const attempt = next.attempt ?? (isContinued ? lease.attempt - 1 : undefined);
  const leastMs = Math.min(REPEAT_AFTER.mostMs, REPEAT_AFTER.share * underWayMs(context, lease));
  const afterMs = lease.deadlineAt === null ? Math.max(next.afterMs, Math.round(leastMs)) : next.afterMs;
  await tx.work.release(lease, {
    cookie,
    notBefore: now + (cookie === null ? afterMs : untilDeadline(lease, now, afterMs)),
    lastError: problem,
    waitedAttempt,
    isHeld,
    progress: toProgress(lease, next, now),
    attempt,
  });
}

/** The pause that a platform asks for while its step is under way. It ends at the step's deadline, so that a late step does. */
function untilDeadline({ deadlineAt }: Lease, now: number, pauseMs: number): number {
  return deadlineAt !== null && deadlineAt > now ? Math.min(pauseMs, deadlineAt - now) : pauseMs;
}
