import type { InstanceRecord } from '../../instances/instance-record.ts';
import { transition } from '../../instances/transition.ts';
import type { Step, VolumeDriver } from '../../ports/platform-driver.ts';
import type { Transaction } from '../../ports/store.ts';
import { isAttachable } from '../../volumes/attachable.ts';
import { followAttachments } from '../../volumes/transition.ts';
import type { Attachment, VolumeRecord } from '../../volumes/volume-record.ts';
import { callStep } from '../call-platform.ts';
import type { ReconcileContext } from '../context.ts';
import { describeFailure, isFinal, retry } from '../retry.ts';
import { finish, type Next, settleVolume } from '../settle.ts';
import type { Lease } from '../work.ts';

const WAIT_FOR_INSTANCE_MS = 2_000;

/** Brings the attachment records of a volume to what is wanted, removals first, one at a time. */
export async function stepAttach(
  context: ReconcileContext,
  volumes: VolumeDriver,
  lease: Lease,
  record: VolumeRecord,
): Promise<void> {
  const attachments = await context.store.read.volumes.attachmentsOfVolume(record.id);
  const open =
    attachments.find(({ state }) => state === 'detaching') ??
    attachments.find(({ state }) => state === 'attaching');
  if (open === undefined) return settleVolume(context, lease, async () => finish);
  const instance = await context.store.read.instances.byId(open.instanceId);
  if (instance === null) throw new Error(`attachment to an instance without a row: ${open.instanceId}`);
  if (open.state === 'detaching') return detach(context, volumes, lease, record, open, instance);
  if (!isAttachable(instance)) return settleAttachment(context, lease, open, 'detaching');
  if (!(await isReady(context, instance))) return prepare(context, lease, instance);
  const step = await callStep(context, lease, () =>
    volumes.attach(record.ownerRef, instance.ownerRef, lease.cookie),
  );
  await settleVolume(context, lease, async (tx, current): Promise<Next> => {
    if (step.outcome === 'pending') return { step: 'again', afterMs: step.pollAfterMs, cookie: step.cookie };
    if (step.outcome === 'failed' && !isFinal(step))
      return retry(context, lease, describeFailure(step), step.retryAfterMs);
    if (step.outcome === 'failed')
      context.log.warn(
        { volume: current.id, instance: instance.id, reason: describeFailure(step) },
        'the platform refused an attachment',
      );
    await write(tx, current, open, step.outcome === 'done' ? 'attached' : 'detaching');
    await endAttachCycle(context, tx, instance.id);
    return { step: 'attach' };
  });
}

async function detach(
  context: ReconcileContext,
  volumes: VolumeDriver,
  lease: Lease,
  record: VolumeRecord,
  open: Attachment,
  instance: InstanceRecord,
): Promise<void> {
  const step: Step<null> = await callStep(context, lease, () =>
    volumes.detach(record.ownerRef, instance.ownerRef, lease.cookie),
  );
  await settleVolume(context, lease, async (tx, current): Promise<Next> => {
    if (step.outcome === 'pending') return { step: 'again', afterMs: step.pollAfterMs, cookie: step.cookie };
    if (step.outcome === 'failed' && step.code !== 'gone')
      return retry(context, lease, describeFailure(step), step.retryAfterMs);
    await write(tx, current, open, 'gone');
    await endAttachCycle(context, tx, instance.id);
    return { step: 'attach' };
  });
}

async function settleAttachment(
  context: ReconcileContext,
  lease: Lease,
  open: Attachment,
  to: Attachment['state'],
): Promise<void> {
  await settleVolume(context, lease, async (tx, current): Promise<Next> => {
    await write(tx, current, open, to);
    return { step: 'attach' };
  });
}

async function write(
  tx: Transaction,
  volume: VolumeRecord,
  attachment: Attachment,
  to: Attachment['state'] | 'gone',
): Promise<void> {
  if (to === 'gone') await tx.volumes.removeAttachment(attachment.volumeId, attachment.instanceId);
  else await tx.volumes.putAttachment({ ...attachment, state: to });
  await followAttachments(tx, volume);
}

/** Whether the machine is there, and in the state in which this platform attaches. */
async function isReady(
  { driver, store }: ReconcileContext,
  { id, status, endpoint }: InstanceRecord,
): Promise<boolean> {
  if (driver.manifest.attachVolume === 'hot') return endpoint !== null && status !== 'STOPPING';
  return status === 'STOPPED' && (await store.read.work.of(id)) === null;
}

/**
 * O: Volume status, rules: "If a stop-attach-start cycle is needed to attach, the orchestrator performs it
 * internally and reports the intermediate instance states accurately."
 */
async function prepare(context: ReconcileContext, lease: Lease, instance: InstanceRecord): Promise<void> {
  const { driver, clock } = context;
  await settleVolume(context, lease, async (tx): Promise<Next> => {
    const current = await tx.instances.byId(instance.id);
    const isIdle = (await tx.work.of(instance.id)) === null;
    if (driver.manifest.attachVolume === 'cold' && current?.status === 'ONLINE' && isIdle) {
      const now = clock.now();
      await transition(tx, current, 'STOPPING', now, { attachCycle: true });
      await tx.work.put({
        resourceId: current.id,
        resourceKind: 'instance',
        kind: 'stop',
        notBefore: now,
        deadlineAt: null,
      });
    }
    return { step: 'again', afterMs: WAIT_FOR_INSTANCE_MS };
  });
}

/** Starts an instance again that was stopped to attach, once nothing more is to be attached to it. */
async function endAttachCycle(
  { clock }: ReconcileContext,
  tx: Transaction,
  instanceId: string,
): Promise<void> {
  const instance = await tx.instances.byId(instanceId);
  if (
    instance?.attachCycle !== true ||
    instance.status !== 'STOPPED' ||
    (await tx.work.of(instanceId)) !== null
  )
    return;
  const open = await tx.volumes.attachmentsOfInstance(instanceId);
  if (open.some(({ state }) => state === 'attaching')) return;
  const now = clock.now();
  await tx.work.put({
    resourceId: instanceId,
    resourceKind: 'instance',
    kind: 'start',
    notBefore: now,
    deadlineAt: now + instance.spec.onlineWithinMs,
  });
}
