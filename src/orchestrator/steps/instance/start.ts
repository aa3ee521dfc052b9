import { amend } from '../../instances/transition.ts';
import type { FailureCode, ObservedMachine, Step } from '../../model/platform-driver.ts';
import { type InstanceRecord, instanceLogNames } from '../../model/records.ts';
import type { Transaction } from '../../model/store.ts';
import type { Lease } from '../../model/work.ts';
import { callStep } from '../../platform/call-platform.ts';
import { confirmMachine } from '../../platform/confirm-gone.ts';
import type { Calling, Recording } from '../../platform/context.ts';
import { afterObservation, type Observation } from '../../platform/visibility.ts';
import {
  describeFailure,
  failCreate,
  failInstance,
  isFinal,
  isInconclusive,
  isPastDeadline,
  isRepeated,
  onMachineGone,
  recordLoss,
  retry,
  retryFailed,
} from '../fail.ts';
import { type Decide, type Next, settleInstance, whilePending } from '../settle.ts';

const STARTING_POLL_MS = 500;
const NO_ROOM: ReadonlySet<FailureCode> = new Set(['capacity', 'quota']);

type Attempted =
  | Step<ObservedMachine>
  /** An earlier call is starting the machine; its cookie is unknown. */
  | { outcome: 'starting' }
  | { outcome: 'gone'; observedAt: number }
  | { outcome: 'unknown'; reason: string }
  /** The machine is stopped, and it is too late for another call. */
  | { outcome: 'late' }
  /** The platform is removing the machine. */
  | { outcome: 'removing' };

/**
 * Starts the machine of a STOPPED instance; then the SSH proof makes it ONLINE. A failed start is undone. Also restarts
 * a machine that powered itself off while PROVISIONING.
 */
export async function stepStart(
  context: Recording & Calling,
  lease: Lease,
  record: InstanceRecord,
): Promise<void> {
  const { attempted, found } = await findOrStart(context, lease, record);
  const settle: Decide<InstanceRecord> = async (tx, current, lease) => {
    const now = context.clock.now();
    const isLate = isPastDeadline(lease, now);
    switch (attempted.outcome) {
      case 'done':
        context.alarms.end({ kind: 'start_failed', subject: record.id });
        await amend(tx, current, now, { endpoint: attempted.value.endpoint ?? current.endpoint });
        return { step: 'verify', deadlineAt: lease.deadlineAt };
      case 'gone':
        return onMachineGone(context, lease, tx, current, attempted.observedAt);
      case 'unknown':
        return retry(context, lease, attempted.reason);
      case 'pending':
        if (isLate) break;
        return whilePending(attempted);
      case 'starting':
        if (isLate) break;
        return { step: 'again', afterMs: STARTING_POLL_MS, problem: 'the machine is starting' };
      case 'failed':
        if (isInconclusive(attempted) || (!isFinal(attempted) && !isLate))
          return retryFailed(context, lease, attempted);
    }
    return undoStart(context, lease, tx, current, attempted);
  };
  await settleInstance(context, lease, settle, { visibility: found && afterObservation(found) });
}

/** Sends the start. If an earlier call's outcome is unknown, reads the machine first. */
async function findOrStart(
  context: Recording & Calling,
  lease: Lease,
  record: InstanceRecord,
): Promise<{ attempted: Attempted; found?: Observation<ObservedMachine> }> {
  const { driver, clock } = context;
  if (isRepeated(lease)) {
    const found = await confirmMachine(context, record);
    const attempted = toAttempted(found, isPastDeadline(lease, clock.now()));
    if (attempted !== undefined) return { attempted, found };
  }
  const step = await callStep(context, lease, (call) => driver.start(record.ownerRef, lease.cookie, call));
  if (step.outcome !== 'failed' || step.code !== 'gone') return { attempted: step };
  const found = await confirmMachine(context, record);
  return { attempted: found.answer === 'gone' ? gone(found) : step, found };
}

/** Converts what was read of the machine to an outcome. Undefined if the machine is stopped: the start is sent. */
function toAttempted(found: Observation<ObservedMachine>, isLate: boolean): Attempted | undefined {
  if (found.answer === 'unknown') return { outcome: 'unknown', reason: found.reason };
  if (found.answer === 'gone') return gone(found);
  const { power } = found.value;
  if (power === 'running') return { outcome: 'done', value: found.value };
  if (power === 'starting' || power === 'building') return { outcome: 'starting' };
  if (power === 'destroying') return { outcome: 'removing' };
  return isLate ? { outcome: 'late' } : undefined;
}

function gone({ observedAt }: Pick<Observation<unknown>, 'observedAt'>): Attempted {
  return { outcome: 'gone', observedAt };
}

async function undoStart(
  context: Recording,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
  attempted: Attempted,
): Promise<Next> {
  if (record.status === 'PROVISIONING') return notStarted(context, lease, tx, record, attempted);
  if (attempted.outcome === 'failed' && attempted.code === 'disk_lost')
    return diskLost(context, lease, tx, record, attempted.detail);
  const { alarms, log, platform } = context;
  const reason = whyNotStarted(lease, attempted);
  const text = 'a start failed; the instance stays stopped';
  const fields = { ...instanceLogNames(record), reason };
  const alarm = { kind: 'start_failed', subject: record.id, platform } as const;
  // A lack of capacity passes by itself. For any other cause a tenant can only retry, so an operator has to find it.
  if (attempted.outcome !== 'failed' || !NO_ROOM.has(attempted.code))
    alarms.raise({ ...alarm, text: `${text}. Find the cause on the platform`, detail: reason, fields }, log);
  if (record.attachCycle) await amend(tx, record, context.clock.now(), { attachCycle: false });
  return { step: 'stop', because: `${text}: ${reason}` };
}

function whyNotStarted({ lastError }: Lease, attempted: Attempted): string {
  if (attempted.outcome === 'failed') return describeFailure(attempted);
  if (attempted.outcome === 'removing') return 'the platform is removing its machine';
  const late = 'the machine did not start in time';
  return lastError === null ? late : `${late}; last attempt: ${lastError}`;
}

/** Ends an instance whose start can never succeed, since its disk is lost. It counts against the loss cap. */
async function diskLost(
  context: Recording,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
  detail: string,
): Promise<Next> {
  const { alarms, log, platform } = context;
  return recordLoss(context, lease, tx, record, () => {
    const text =
      'the disk of a stopped machine is lost: its start put the instance in ERROR. Find out what removed it';
    const fields = { ...instanceLogNames(record), detail };
    alarms.raise({ kind: 'disk_lost', subject: record.id, platform, text, detail, fields }, log);
    return failInstance(context, tx, record, { as: 'failure', cause: 'disk_lost', reason: detail });
  });
}

/**
 * Handles a create whose machine could not be started again. A final failure ends it; otherwise it continues until its
 * deadline.
 */
async function notStarted(
  context: Recording,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
  attempted: Attempted,
): Promise<Next> {
  if (attempted.outcome !== 'failed' || !isFinal(attempted))
    return { step: 'verify', deadlineAt: lease.deadlineAt };
  const reason = `the machine powered itself off and could not be started again (${describeFailure(attempted)})`;
  return failCreate(context, tx, record, 'powered_off', reason);
}
