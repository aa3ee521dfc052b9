import { transition } from '../instances/transition.ts';
import type { InstanceRecord } from '../model/instance-record.ts';
import type { ObservedMachine } from '../model/platform-driver.ts';
import type { Transaction } from '../model/store.ts';
import type { Lease } from '../model/work.ts';
import type { ReconcileContext } from '../platform/context.ts';
import { HELD } from '../platform/loss-cap.ts';
import { mayTurnUpForMs } from '../platform/visibility.ts';
import { failInstance } from './instance/fail.ts';
import { pauseMs } from './retry.ts';
import { finish, type Next } from './settle.ts';

const VANISHED = 'The platform no longer has the machine of this instance.';

/** Gone, proved by a look that began at `observedAt`, without our doing. */
export async function onMachineGone(
  context: ReconcileContext,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
  observedAt: number,
): Promise<Next> {
  const now = context.clock.now();
  // Its SSH may answer before the platform shows it.
  const waitMs = mayTurnUpForMs(context, record.createOpenUntil, observedAt);
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
        if (record.spec.instanceType !== 'SPOT') return failInstance(context, tx, record, VANISHED);
        await transition(tx, record, 'DESTROYING', now, { attachCycle: false });
        return { step: 'destroy' };
      });
    case 'PROVISIONING':
      return failInstance(context, tx, record, VANISHED);
    default:
      return finish;
  }
}

/** Ends an instance for what the platform did; where too many would end, it is left as it is and asked for again. */
export async function recordLoss(
  context: ReconcileContext,
  lease: Lease,
  tx: Transaction,
  record: InstanceRecord,
  end: () => Promise<Next>,
): Promise<Next> {
  if (await context.losses.admits(tx, record)) return end();
  return { step: 'again', afterMs: pauseMs(context, lease), problem: HELD };
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
    failInstance(context, tx, record, `The machine failed: ${detail ?? 'no detail given'}.`),
  );
}
