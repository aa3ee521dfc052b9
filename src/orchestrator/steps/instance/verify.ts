import type { ProbeResult } from '../../../ports/ssh-probe.ts';
import { amend, transition } from '../../instances/transition.ts';
import type { FailureCause } from '../../model/failure.ts';
import type { Endpoint, ObservedMachine, Presence } from '../../model/platform-driver.ts';
import { type InstanceRecord, instanceLogNames } from '../../model/records.ts';
import type { Transaction } from '../../model/store.ts';
import type { Lease } from '../../model/work.ts';
import { prove } from '../../platform/call-platform.ts';
import { confirmMachine } from '../../platform/confirm-gone.ts';
import type { Calling, Recording } from '../../platform/context.ts';
import {
  afterObservation,
  mayAppearForMs,
  type Observation,
  type VisibilityUpdate,
} from '../../platform/visibility.ts';
import { describeWindow, failCreate, failInstance, recordLoss } from '../fail.ts';
import { type Decide, type Next, settleInstance } from '../settle.ts';

type FailedProbe = Extract<ProbeResult, { ok: false }>;

/**
 * Makes an instance ONLINE once its public endpoint completes an SSH handshake with the pinned host key and accepts
 * each injected key. Later failures of SSH do not undo that. A create that is late fails; a start that is late is
 * undone.
 */
export async function stepVerify(
  context: Recording & Calling,
  lease: Lease,
  record: InstanceRecord,
): Promise<void> {
  const pinned = record.hostKeyFingerprint ?? record.endpoint?.hostKeyFingerprint;
  context.failpoint('verify:before-call');
  const result = await proveInstance(context, record);
  context.failpoint('verify:after-call');
  if (result.ok && pinned !== undefined) return proved(context, lease, result);
  const found = await confirmMachine(context, record);
  const visibility = afterObservation(found);
  if (result.ok && isAtSameEndpoint(record, found)) return proved(context, lease, result, visibility);
  const failed = result.ok ? notKnown : result;
  const settle: Decide<InstanceRecord> = (tx, current, lease) =>
    afterFailedProbe(context, lease, tx, current, failed, found);
  await settleInstance(context, lease, settle, { visibility });
}

const notKnown: FailedProbe = {
  ok: false,
  step: 'host_key',
  detail: 'the machine that answered is not known to be this one',
};

/**
 * Whether the platform confirms that the machine still has this endpoint. No host key was known before this proof, so
 * another machine may have answered: the address may have been reused by one with the same keys.
 */
function isAtSameEndpoint({ endpoint }: InstanceRecord, found: Presence<ObservedMachine>): boolean {
  if (found.answer !== 'observed' || found.value.power !== 'running') return false;
  return found.value.endpoint !== undefined && !hasMoved(endpoint, found.value.endpoint);
}

/** When the window of a create began. An outage of the platform moves its begin and its end. */
function windowBegan({ createdAt, spec }: InstanceRecord, { deadlineAt }: Lease): number {
  return deadlineAt === null ? createdAt : Math.max(createdAt, deadlineAt - spec.onlineWithinMs);
}

async function proved(
  context: Recording,
  lease: Lease,
  { hostKeyFingerprint }: Extract<ProbeResult, { ok: true }>,
  visibility?: VisibilityUpdate,
): Promise<void> {
  const { clock, log } = context;
  const settle: Decide<InstanceRecord> = async (tx, current, lease) => {
    const changes = { hostKeyFingerprint, attachCycle: false };
    const online = await transition(tx, current, 'ONLINE', clock.now(), changes);
    const now = clock.now();
    log.info({ ...instanceLogNames(online), afterMs: now - online.createdAt }, 'instance is online');
    if (context.trace !== undefined && current.status === 'PROVISIONING') {
      const afterMs = Math.max(0, now - windowBegan(online, lease));
      context.trace.verdict = { status: 'ONLINE', offerId: online.offerId, afterMs };
    }
    return { step: 'finish' };
  };
  await settleInstance(context, lease, settle, { visibility });
}

async function afterFailedProbe(
  context: Recording & Calling,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
  failed: FailedProbe,
  found: Observation<ObservedMachine>,
): Promise<Next> {
  const now = context.clock.now();
  // Without a deadline this is an adopted machine. It counts against the loss cap.
  const lost = (as: 'failure' | 'loss', cause: FailureCause, reason: string): Promise<Next> =>
    lease.deadlineAt === null && record.status === 'PROVISIONING'
      ? recordLoss(context, lease, tx, record, () => failInstance(context, tx, record, { as, cause, reason }))
      : giveUp(context, tx, record, cause, reason);
  if (found.answer === 'gone') {
    const waitMs = mayAppearForMs(context, record.createOpenUntil, found.observedAt);
    if (waitMs > 0) return { step: 'again', afterMs: waitMs, problem: 'the platform does not show it yet' };
    return lost('loss', 'machine_gone', 'the machine is gone from the platform');
  }
  if (found.answer === 'observed' && found.value.power === 'failed')
    return lost(
      'failure',
      'machine_failed',
      `the machine failed: ${found.value.detail ?? 'no detail given'}`,
    );
  const isLate = lease.deadlineAt !== null && now >= lease.deadlineAt;
  if (found.answer === 'observed' && found.value.power === 'stopped' && !isLate)
    return poweredOff(context, lease, tx, record);
  // A create ends after its window even if the platform does not answer; its clean-up waits (O: the window of a
  // create).
  if (isLate && (found.answer === 'observed' || record.status === 'PROVISIONING')) {
    return giveUp(
      context,
      tx,
      record,
      'ssh',
      `SSH was not ready within ${describeWindow(record)}; the last attempt failed at "${failed.step}": ${failed.detail}`,
    );
  }
  if (found.answer === 'observed' && hasMoved(record.endpoint, found.value.endpoint))
    await amend(tx, record, now, { endpoint: found.value.endpoint ?? null });
  return {
    step: 'again',
    afterMs: probePauseMs(context, lease),
    problem: `${failed.step}: ${failed.detail}`,
  };
}

/** Handles a machine that powered itself off before SSH was proved. A create starts it again; a start is undone. */
async function poweredOff(
  context: Recording & Calling,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
): Promise<Next> {
  const canStart = context.driver.manifest.resume && record.spec.resumable;
  if (record.status !== 'PROVISIONING' || !canStart)
    return giveUp(context, tx, record, 'powered_off', 'the machine powered itself off before SSH was ready');
  return { step: 'start', deadlineAt: lease.deadlineAt, afterMs: FIRST_PAUSE_MS };
}

/** Ends a create in ERROR, or undoes a start: the instance stays STOPPED with its disk. */
async function giveUp(
  context: Recording,
  tx: Transaction,
  record: InstanceRecord,
  cause: FailureCause,
  reason: string,
): Promise<Next> {
  if (record.status === 'PROVISIONING') return failCreate(context, tx, record, cause, reason);
  if (record.attachCycle) await amend(tx, record, context.clock.now(), { attachCycle: false });
  return { step: 'stop', because: `a start failed; the instance stays stopped: ${reason}` };
}

function hasMoved(before: Endpoint | null, now: Endpoint | undefined): boolean {
  return now !== undefined && (before?.publicIp !== now.publicIp || before.sshPort !== now.sshPort);
}

/** Makes the SSH proof of an instance, with its known host key. */
export async function proveInstance(
  context: Recording & Calling,
  { endpoint, spec, hostKeyFingerprint }: InstanceRecord,
): Promise<ProbeResult> {
  if (endpoint === null)
    return { ok: false, step: 'connect', detail: 'the platform has given the machine no public address' };
  return proveEndpoint(context, endpoint, spec.sshKeys, hostKeyFingerprint ?? endpoint.hostKeyFingerprint);
}

/** Makes the SSH proof of an endpoint: it accepts each of `sshKeys`, and its host key is `pinned`, if that is known. */
export function proveEndpoint(
  context: Recording & Calling,
  { publicIp: host, sshPort: port, sshUsername: username }: Endpoint,
  sshKeys: readonly string[],
  pinned: string | undefined,
): Promise<ProbeResult> {
  // The proof ends before the call's deadline, so that its failure names the step.
  const withinMs = 0.9 * context.options.callTimeoutMs;
  return prove(context, () => context.probe.probe({ host, port, username }, sshKeys, pinned, withinMs));
}

/** The pause after the first failed SSH proof, in milliseconds. */
const FIRST_PAUSE_MS = 200;

/** The pause before the next SSH proof, in milliseconds. */
export function probePauseMs({ options }: Recording, { attempt }: Lease): number {
  return Math.min(options.probeIntervalMs, FIRST_PAUSE_MS * 2 ** Math.min(attempt - 1, 10));
}
