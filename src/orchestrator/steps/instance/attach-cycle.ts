import { transition } from '../../instances/transition.ts';
import { type InstanceRecord, instanceLogNames } from '../../model/records.ts';
import { lockVolumesOf, putInstanceWork } from '../../model/rows.ts';
import type { Transaction } from '../../model/store.ts';
import type { ReconcileContext } from '../../platform/context.ts';
import { finish, type Next } from '../settle.ts';

/** Whether an ONLINE instance can be stopped for its volumes and started again. */
export function canCycle({ driver }: ReconcileContext, { spec }: InstanceRecord): boolean {
  return driver.manifest.stop && driver.manifest.resume && spec.resumable;
}

/**
 * O: Volume status, rules: "If a stop-attach-start cycle is needed to attach, the orchestrator performs it
 * internally and reports the intermediate instance states accurately."
 */
export async function beginAttachCycle(
  { clock, log }: ReconcileContext,
  tx: Transaction,
  instance: InstanceRecord,
): Promise<void> {
  const now = clock.now();
  await transition(tx, instance, 'STOPPING', now, { attachCycle: true }, { cause: 'attach' });
  await putInstanceWork(tx, instance.id, 'stop', now);
  log.info(
    instanceLogNames(instance),
    'an instance is stopped to attach or detach a volume, and started again',
  );
}

/**
 * Starts an instance again that was stopped for its volumes, once none of them needs it stopped. The caller has locked
 * the instance and all its volumes.
 */
export async function endAttachCycle(
  { clock }: ReconcileContext,
  tx: Transaction,
  instanceId: string,
): Promise<void> {
  const instance = await tx.instances.byId(instanceId);
  // An instance with open work checks this itself in `afterStop`.
  if (instance === null || (await tx.work.of(instanceId)) !== null || !(await isOver(tx, instance))) return;
  const now = clock.now();
  await putInstanceWork(tx, instanceId, 'start', now, now + instance.spec.onlineWithinMs);
}

/**
 * The next step for a machine that was observed stopped: the end of the cycle, if its volumes no longer need the stop.
 */
export async function afterStop(
  { clock }: ReconcileContext,
  tx: Transaction,
  instance: InstanceRecord,
): Promise<Next> {
  if (!(await isOver(tx, instance))) return finish;
  return { step: 'start', deadlineAt: clock.now() + instance.spec.onlineWithinMs };
}

/** Whether the cycle can end. It does not wait for a volume that is still being made, since that may take any time. */
async function isOver(tx: Transaction, { id, status, attachCycle }: InstanceRecord): Promise<boolean> {
  if (!attachCycle || status !== 'STOPPED') return false;
  const volumes = await lockVolumesOf(tx, [id]);
  return (await tx.volumes.attachmentsOfInstance(id)).every(
    ({ state, volumeId }) => state === 'attached' || volumes.get(volumeId)?.status === 'CREATING',
  );
}
