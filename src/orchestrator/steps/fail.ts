import { raiseOne } from '../alarms/fold.ts';
import { transition } from '../instances/transition.ts';
import { recordedOrder } from '../model/destroy-order.ts';
import { type FailureCause, type FinalCode, isFinalCode, tenantTexts } from '../model/failure.ts';
import type { ObservedMachine, Step } from '../model/platform-driver.ts';
import { type InstanceRecord, instanceLogNames } from '../model/records.ts';
import type { Transaction } from '../model/store.ts';
import type { Lease } from '../model/work.ts';
import type { Calling, ReconcileContext, Recording } from '../platform/context.ts';
import { areLossesAccepted, HELD } from '../platform/loss-cap.ts';
import { mayAppearForMs } from '../platform/visibility.ts';
import { dropAttachmentsOf } from '../volumes/attach.ts';
import { keepsFailing } from './report-step.ts';
import { type Again, finish, type Next } from './settle.ts';

const VANISHED = 'the platform no longer has its machine';
const GONE =
  'the platform no longer has a machine whose removal nobody requested from Berth: find out who or what removed it';

/** Handles a machine that is gone without a request, as proved by a read that began at `observedAt`. */
export async function onMachineGone(
  context: Recording & Calling,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
  observedAt: number,
): Promise<Next> {
  const now = context.clock.now();
  // The machine's SSH may answer before the platform shows the machine.
  const waitMs = mayAppearForMs(context, record.createOpenUntil, observedAt);
  if (waitMs > 0) return { step: 'again', afterMs: waitMs, problem: 'the platform may not show it yet' };
  switch (record.status) {
    case 'STOPPED':
      return recordLoss(context, lease, tx, record, async () => {
        await alarmGone(context, tx, record);
        await transition(tx, record, 'OFFLINE', now, { attachCycle: false }, { detail: VANISHED });
        await dropAttachmentsOf(tx, record.id, now);
        return afterLoss(context);
      });
    case 'ONLINE':
    case 'STOPPING':
      return recordLoss(context, lease, tx, record, async () => {
        if (record.spec.instanceType !== 'SPOT') {
          await alarmGone(context, tx, record);
          return failInstance(context, tx, record, { as: 'loss', cause: 'machine_gone', reason: VANISHED });
        }
        await transition(tx, record, 'DESTROYING', now, { attachCycle: false }, { detail: VANISHED });
        return { step: 'release' };
      });
    case 'PROVISIONING':
      return failInstance(context, tx, record, { as: 'create', cause: 'machine_gone', reason: VANISHED });
    default:
      return finish;
  }
}

/** Where the operator has accepted losses, they are known. */
async function alarmGone(context: Recording, tx: Transaction, record: InstanceRecord): Promise<void> {
  const { alarms, platform, log } = context;
  if (await areLossesAccepted({ ...context, store: { read: tx } })) return;
  const { id: subject, status, host } = record;
  const detail = `it was ${status}${host === null ? '' : ` on ${host}`}`;
  const fields = { ...instanceLogNames(record), from: status, host };
  raiseOne(alarms, { kind: 'machine_gone', subject, platform, text: GONE, detail, fields, log });
}

/** Ends an instance as lost. Beyond the loss cap it keeps its state, and the step is retried. */
export async function recordLoss(
  context: Recording,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
  end: () => Promise<Next>,
): Promise<Next> {
  if (await context.losses.admits(tx, record)) return end();
  return { step: 'again', afterMs: pauseMs(context, lease), problem: HELD, isHeld: true };
}

/** Handles a machine that exists and has failed without a request. */
export async function onMachineFailed(
  context: Recording,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
  { detail }: ObservedMachine,
): Promise<Next> {
  const reason = `the machine failed: ${detail ?? 'no detail given'}`;
  return recordLoss(context, lease, tx, record, () =>
    failInstance(context, tx, record, { as: 'failure', cause: 'machine_failed', reason }),
  );
}

/**
 * How an instance fails. `create`: its create failed, and the order removes what it made. `failure`: its machine failed
 * later, and stays. `loss`: the platform no longer has its machine.
 */
interface Failure {
  as: 'create' | 'failure' | 'loss';
  cause: FailureCause;
  /** The reason is for operators only; the tenant reads the text of the cause. */
  reason: string;
}

/** Ends an instance in ERROR and drops its cloud_init. */
export async function failInstance(
  context: Recording,
  tx: Transaction,
  record: InstanceRecord,
  { as, cause, reason }: Failure,
): Promise<Next> {
  const now = context.clock.now();
  const spec = { ...record.spec, cloudInit: undefined };
  const changes = { error: tenantTexts[cause], attachCycle: false, spec };
  const order = recordedOrder({ reason: 'failed_create', by: context.alarms.server, at: now });
  const ordered = as === 'create' ? { ...changes, destroyOrder: order } : changes;
  await transition(tx, record, 'ERROR', now, ordered, { detail: reason });
  context.log.warn({ ...instanceLogNames(record), from: record.status, cause, reason }, 'instance failed');
  if (context.trace !== undefined) context.trace.verdict = { status: 'ERROR', cause };
  if (as !== 'create') await dropAttachmentsOf(tx, record.id, now);
  if (as === 'loss') return afterLoss(context);
  const { holdFailedMs } = context.options;
  if (as === 'create' && !holdFailedMs) return { step: 'destroy' };
  return { step: 'hold', deadlineAt: holdFailedMs === null ? null : now + holdFailedMs };
}

/** Like {@link failInstance}, for a failed create. */
export function failCreate(
  context: Recording,
  tx: Transaction,
  record: InstanceRecord,
  cause: FailureCause,
  reason: string,
): Promise<Next> {
  return failInstance(context, tx, record, { as: 'create', cause, reason });
}

/** A lost instance keeps its unit for a time, in case its machine reappears. */
function afterLoss({ options: { holdLostClaimsMs }, clock }: Recording): Next {
  return {
    step: 'release',
    afterMs: Math.min(holdLostClaimsMs, LONGEST_REST_MS),
    deadlineAt: clock.now() + holdLostClaimsMs,
  };
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

/** The time limit for the instance to become ONLINE, as text. */
export function describeWindow({ spec: { onlineWithinMs } }: InstanceRecord): string {
  return onlineWithinMs < 2 * MINUTE_MS
    ? `${Math.round(onlineWithinMs / SECOND_MS)} seconds`
    : `${Math.round(onlineWithinMs / MINUTE_MS)} minutes`;
}

export type Failed = Extract<Step<unknown>, { outcome: 'failed' }>;
type Retrying = Pick<ReconcileContext, 'options' | 'random' | 'health' | 'clock'>;

/**
 * The longest rest, in milliseconds. Work that waits for more than two hours counts as misdated and becomes due at
 * once.
 */
export const LONGEST_REST_MS = 60 * 60_000;

/** Codes that allow no conclusion about the resource. */
const INCONCLUSIVE = new Set<Failed['code']>(['unknown_outcome', 'transient', 'auth']);
/** The pause after the platform refused Berth's credentials, in milliseconds. Frequent calls might lock them. */
const AFTER_AUTH_MS = 5_000;

/** Whether a retry cannot succeed. A lost answer or a platform failure is never final. */
export function isFinal(failed: Failed): failed is Failed & { code: FinalCode } {
  return isFinalCode(failed.code);
}

/** Whether the failure allows no conclusion, not even at a deadline. The platform must be read first. */
export function isInconclusive({ code }: Failed): boolean {
  return INCONCLUSIVE.has(code);
}

/** Whether an earlier call of this step may have been sent. Its outcome is looked up before the next call. */
export function isRepeated({ attempt, cookie, lastError }: Lease): boolean {
  return cookie === null && (attempt > 1 || lastError !== null);
}

export function isPastDeadline({ deadlineAt }: Lease, now: number): boolean {
  return deadlineAt !== null && now >= deadlineAt;
}

/** A pause in milliseconds that doubles with each attempt, with jitter. */
export function pauseMs(
  { options, random }: Pick<Retrying, 'options' | 'random'>,
  { attempt }: Pick<Lease, 'attempt'>,
): number {
  const pause = Math.min(options.lastRetryMs, options.firstRetryMs * 2 ** Math.min(attempt - 1, 20));
  return Math.round(pause * (0.75 + random.next() / 2));
}

/**
 * Retries after a pause, which is at least the one that the platform asked for. If the step keeps failing, it raises an
 * alarm.
 */
export function retry(context: Retrying, lease: Lease, problem: string, retryAfterMs = 0): Again {
  const afterMs = Math.max(retryAfterMs, pauseMs(context, lease));
  return { step: 'again', afterMs, problem, isAlarm: keepsFailing(context, lease) };
}

/**
 * Like {@link retry}, after a failure of the driver. Refused credentials do not count as an attempt, unless the
 * platform is trusted: then the cause is this resource.
 */
export function retryFailed(context: Retrying, lease: Lease, failed: Failed): Again {
  const problem = describeFailure(failed);
  if (failed.code !== 'auth' || failed.sideEffect !== 'none')
    return retry(context, lease, problem, failed.retryAfterMs);
  if (context.health.isUp) {
    return retry(context, lease, problem, failed.retryAfterMs ?? AFTER_AUTH_MS);
  }
  const afterMs = failed.retryAfterMs ?? AFTER_AUTH_MS;
  // With a cookie, an earlier call was accepted, so the next attempt may not count as the first.
  const attempt = Math.max(lease.attempt - 1, lease.cookie === null ? 0 : 1);
  return { step: 'again', afterMs, problem, attempt };
}

export function describeFailure({ code, detail }: Pick<Failed, 'code' | 'detail'>): string {
  return `${code}: ${detail}`;
}
