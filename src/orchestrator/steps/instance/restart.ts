import { amend } from '../../instances/transition.ts';
import type { ObservedMachine } from '../../model/platform-driver.ts';
import { type InstanceRecord, instanceLogNames } from '../../model/records.ts';
import { type Lease, type Restart, restartCookie } from '../../model/work.ts';
import { callStep } from '../../platform/call-platform.ts';
import { confirmMachine } from '../../platform/confirm-gone.ts';
import type { Calling, Recording } from '../../platform/context.ts';
import { afterObservation } from '../../platform/visibility.ts';
import {
  describeFailure,
  isFinal,
  isInconclusive,
  isPastDeadline,
  onMachineFailed,
  onMachineGone,
  retryFailed,
} from '../fail.ts';
import { type Decide, finish, type Next, settleInstance, whilePending } from '../settle.ts';
import { probePauseMs, proveInstance } from './verify.ts';

/**
 * Resets the machine of an instance that stays ONLINE; observations are ignored meanwhile. The order has an id, so it
 * can be repeated after a lost answer or a crash and is carried out once. Then the SSH endpoint is proved with the
 * known host key. A restart that is late is given up, and the instance takes the platform's state.
 */
export async function stepRestart(
  context: Recording & Calling,
  lease: Lease,
  record: InstanceRecord,
): Promise<void> {
  const restart = restartCookie.decode(lease.cookie);
  // The restart predates a restore of the database. It has ended, and the machine is not reset again.
  if (restart === undefined)
    return settleInstance(context, lease, async () =>
      giveUp(context, record, 'its state is no longer known'),
    );
  if (restart.phase === 'order') return sendRestart(context, lease, record, restart);
  return prove(context, lease, record, restart);
}

async function sendRestart(
  context: Recording & Calling,
  lease: Lease,
  record: InstanceRecord,
  restart: Restart,
): Promise<void> {
  const { driver, clock } = context;
  const step = await callStep(context, lease, (call) =>
    driver.restart(record.ownerRef, restart.id, restart.driver, call),
  );
  const mustConfirm = step.outcome === 'failed' && !isInconclusive(step);
  const found = mustConfirm ? await confirmMachine(context, record) : undefined;
  const decide: Decide<InstanceRecord> = async (tx, current, lease) => {
    if (step.outcome === 'pending')
      return whilePending(step, restartCookie.encode({ ...restart, driver: step.cookie }));
    if (step.outcome === 'done') {
      await amend(tx, current, clock.now(), { endpoint: step.value.endpoint ?? current.endpoint });
      const cookie = restartCookie.encode({ ...restart, phase: 'prove', driver: null });
      return { step: 'again', afterMs: 0, cookie, progress: null };
    }
    if (found?.answer === 'gone')
      return withCookie(restart, await onMachineGone(context, lease, tx, current, found.observedAt));
    // The machine cannot be reset, or it went down before the reset.
    if (isFinal(step) || (found?.answer === 'observed' && isOff(found.value)))
      return giveUp(context, current, describeFailure(step));
    return withCookie(restart, retryFailed(context, lease, step));
  };
  const settle: Decide<InstanceRecord> = async (tx, current, lease) => {
    const next = await decide(tx, current, lease);
    const isOpen = next.step === 'again' && isPastDeadline(lease, clock.now());
    return isOpen ? giveUp(context, current, 'the platform did not complete it in time') : next;
  };
  await settleInstance(context, lease, settle, { visibility: found && afterObservation(found) });
}

async function prove(
  context: Recording & Calling,
  lease: Lease,
  record: InstanceRecord,
  restart: Restart,
): Promise<void> {
  const result = await proveInstance(context, record);
  const found = result.ok ? undefined : await confirmMachine(context, record);
  const settle: Decide<InstanceRecord> = async (tx, current, lease) => {
    const now = context.clock.now();
    if (result.ok) {
      context.log.info(
        { ...instanceLogNames(current), afterMs: now - restart.since },
        'instance has restarted',
      );
      return finish;
    }
    if (found?.answer === 'gone')
      return withCookie(restart, await onMachineGone(context, lease, tx, current, found.observedAt));
    if (found?.answer === 'observed' && found.value.power === 'failed')
      return withCookie(restart, await onMachineFailed(context, lease, tx, current, found.value));
    // The platform reported that the machine runs again, so it went down after the restart.
    if (found?.answer === 'observed' && isOff(found.value))
      return giveUp(context, current, `the machine is ${found.value.power}`);
    const problem = `${result.step}: ${result.detail}`;
    if (isPastDeadline(lease, now)) return giveUp(context, current, `SSH was not ready in time (${problem})`);
    if (found?.answer === 'observed' && found.value.endpoint !== undefined)
      await amend(tx, current, now, { endpoint: found.value.endpoint });
    return withCookie(restart, { step: 'again', afterMs: probePauseMs(context, lease), problem });
  };
  await settleInstance(context, lease, settle, { visibility: found && afterObservation(found) });
}

function isOff({ power }: ObservedMachine): boolean {
  return power === 'stopped' || power === 'failed' || power === 'destroying';
}

/** Continues the same step with the data of the restart. */
function withCookie(restart: Restart, next: Next): Next {
  return next.step === 'again' ? { ...next, cookie: restartCookie.encode(restart) } : next;
}

/** Gives up the restart. The instance is observed next. */
function giveUp({ log }: Recording, record: InstanceRecord, reason: string): Next {
  log.warn(
    { ...instanceLogNames(record), reason },
    'a restart was given up; the instance takes the state that the platform shows',
  );
  return { step: 'observe' };
}
