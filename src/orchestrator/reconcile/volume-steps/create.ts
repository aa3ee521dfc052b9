import type { VolumeDriver } from '../../ports/platform-driver.ts';
import { toNote } from '../../volumes/note.ts';
import { followAttachments, transitionVolume } from '../../volumes/transition.ts';
import type { VolumeRecord } from '../../volumes/volume-record.ts';
import { callStep } from '../call-platform.ts';
import type { StepContext } from '../context.ts';
import { describeFailure, isFinal, retry } from '../retry.ts';
import { finish, type Next, settleVolume } from '../settle.ts';
import type { Lease } from '../work.ts';

/** CREATING → AVAILABLE, and on to the attachments that were asked for at create. */
export async function stepCreateVolume(
  context: StepContext,
  volumes: VolumeDriver,
  lease: Lease,
  record: VolumeRecord,
): Promise<void> {
  const { catalog, creates, installationId } = context;
  const datacenter = catalog.regions.get(record.region)?.datacenter ?? record.region;
  const spec = {
    ...{ ref: record.ownerRef, datacenter, sizeGb: record.sizeGb, type: record.type ?? undefined },
    note: toNote(installationId, record),
  };
  const step = await callStep(context, lease, () =>
    creates.send(record.ownerRef, () => volumes.create(spec, lease.cookie)),
  );
  await settleVolume(context, lease, async (tx, current): Promise<Next> => {
    if (step.outcome === 'pending') return { step: 'again', afterMs: step.pollAfterMs, cookie: step.cookie };
    if (step.outcome === 'done') {
      const available = await transitionVolume(tx, current, 'AVAILABLE');
      const { status } = await followAttachments(tx, available);
      return status === 'AVAILABLE' ? finish : { step: 'attach' };
    }
    if (!isFinal(step)) return retry(context, lease, describeFailure(step), step.retryAfterMs);
    context.log.warn({ volume: current.id, reason: describeFailure(step) }, 'the platform refused a volume');
    for (const { volumeId, instanceId } of await tx.volumes.attachmentsOfVolume(current.id))
      await tx.volumes.removeAttachment(volumeId, instanceId);
    await transitionVolume(tx, current, 'ERROR');
    return { step: 'destroy' };
  });
}
