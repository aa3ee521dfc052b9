import { transition } from '../instances/transition.ts';
import { type FailureCause, tenantTexts } from '../model/failure.ts';
import type { ObservedMachine } from '../model/platform-driver.ts';
import { type InstanceRecord, instanceLogNames } from '../model/records.ts';
import type { Transaction } from '../model/store.ts';
import type { Lease } from '../model/work.ts';
import type { ReconcileContext } from '../platform/context.ts';
import { HELD } from '../platform/loss-cap.ts';
import { mayAppearForMs } from '../platform/visibility.ts';
import { pauseMs } from './retry.ts';
import { finish, type Next } from './settle.ts';

const VANISHED = 'the platform no longer has its machine';

/** Handles a machine that is gone without our doing, proved by a read that began at `observedAt`. */
export async function onMachineGone(
  context: ReconcileContext,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
  observedAt: number,
): Promise<Next> {
  const now = context.clock.now();
  // Its SSH may answer before the platform shows it.
  const waitMs = mayAppearForMs(context, record.createOpenUntil, observedAt);
  if (waitMs > 0) return { step: 'again', afterMs: waitMs, problem: 'the platform may not show it yet' };
  switch (record.status) {
    case 'STOPPED':
      return recordLoss(context, lease, tx, record, async () => {
        await transition(tx, record, 'OFFLINE', now, { attachCycle: false });
        return { step: 'destroy' };
      });
    case 'ONLINE':
    case 'STOPPING':
      return recordLoss(context, lease, tx, record, async () => {
        if (record.spec.instanceType !== 'SPOT')
          return failInstance(context, tx, record, 'machine_gone', VANISHED);
        await transition(tx, record, 'DESTROYING', now, { attachCycle: false });
        return { step: 'destroy' };
      });
    case 'PROVISIONING':
      return failInstance(context, tx, record, 'machine_gone', VANISHED);
    default:
      return finish;
  }
}

/** Ends an instance as lost. Beyond the loss cap it keeps its state, and the step is retried. */
export async function recordLoss(
  context: ReconcileContext,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
  end: () => Promise<Next>,
): Promise<Next> {
  if (await context.losses.admits(tx, record)) return end();
  return { step: 'again', afterMs: pauseMs(context, lease), problem: HELD, isHeld: true };
}

/** The machine is there and has failed, without our doing. */
export async function onMachineFailed(
  context: ReconcileContext,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
  { detail }: ObservedMachine,
): Promise<Next> {
  return recordLoss(context, lease, tx, record, () =>
    failInstance(context, tx, record, 'machine_failed', `the machine failed: ${detail ?? 'no detail given'}`),
  );
}

/**
 * Ends an instance in ERROR, and has what is left of it on the platform removed, at once or after the hold that is configured:
 * an instance that nobody deletes leaks no machine and holds no capacity. Its tenant reads the sentence of the cause; `reason` is
 * for operators alone. What cloud_init held is dropped.
 */
export async function failInstance(
  context: ReconcileContext,
  tx: Transaction,
  record: InstanceRecord,
  cause: FailureCause,
  reason: string,
): Promise<Next> {
  const spec = { ...record.spec, cloudInit: undefined };
  const changes = { error: tenantTexts[cause], attachCycle: false, spec };
  await transition(tx, record, 'ERROR', context.clock.now(), changes, { detail: reason });
  context.log.warn({ ...instanceLogNames(record), from: record.status, cause, reason }, 'instance failed');
  if (context.trace !== undefined) context.trace.verdict = { status: 'ERROR', cause };
  return holdOrDestroy(context);
}

function holdOrDestroy({ options: { holdFailedMs }, clock }: ReconcileContext): Next {
  return holdFailedMs === 0 ? { step: 'destroy' } : { step: 'hold', deadlineAt: clock.now() + holdFailedMs };
}

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

/** How long the instance had to come ONLINE, in words. */
export function describeWindow({ spec: { onlineWithinMs } }: InstanceRecord): string {
  return onlineWithinMs < 2 * MINUTE_MS
    ? `${Math.round(onlineWithinMs / SECOND_MS)} seconds`
    : `${Math.round(onlineWithinMs / MINUTE_MS)} minutes`;
}
