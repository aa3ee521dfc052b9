import { assertTransition } from '../../contract/transitions.ts';
import { usdFromMicroUsd } from '../../contract/values.ts';
import { type Volume, type VolumeStatus, volumeTransitions } from '../../contract/volume.ts';
import type { Attachment, VolumeRecord } from '../model/records.ts';
import type { Transaction, VolumeReader } from '../model/store.ts';

/**
 * Changes a volume's status. Nothing else may write it. @throws {IllegalTransition} if the table has no such transition
 */
export async function transitionVolume(
  tx: Transaction,
  record: VolumeRecord,
  to: VolumeStatus,
): Promise<VolumeRecord> {
  if (record.status === to) return record;
  assertTransition(volumeTransitions, record.status, to, `volume ${record.id}`);
  const changed = { ...record, status: to };
  await tx.volumes.update(changed);
  return changed;
}

/** Sets the status of a volume from its attachments. If several changed, it passes through the states in between. */
export async function updateAttachmentStatus(tx: Transaction, record: VolumeRecord): Promise<VolumeRecord> {
  if (record.status === 'CREATING' || record.status === 'DELETING' || record.status === 'ERROR')
    return record;
  const to = statusFromAttachments(await tx.volumes.attachmentsOfVolume(record.id));
  const isStep = record.status === to || volumeTransitions[record.status].includes(to);
  const between = record.status === 'AVAILABLE' ? 'ATTACHING' : 'DETACHING';
  return transitionVolume(tx, isStep ? record : await transitionVolume(tx, record, between), to);
}

function statusFromAttachments(attachments: readonly Attachment[]): VolumeStatus {
  const has = (state: Attachment['state']): boolean =>
    attachments.some((attachment) => attachment.state === state);
  if (has('detaching')) return 'DETACHING';
  if (has('attaching')) return 'ATTACHING';
  return has('attached') ? 'ATTACHED' : 'AVAILABLE';
}

/** O: Volume, as JSON. An attachment counts until its record is gone (O: Volume status, rules). */
export async function toVolume(volumes: VolumeReader, record: VolumeRecord): Promise<Volume> {
  const isOnPlatform = ({ state }: Attachment): boolean => state !== 'attaching';
  const attachments = await volumes.attachmentsOfVolume(record.id);
  return {
    id: record.id,
    name: record.name,
    size_gb: record.sizeGb,
    region: record.region,
    type: record.type ?? undefined,
    status: record.status,
    attached_instance_ids: attachments.filter(isOnPlatform).map(({ instanceId }) => instanceId),
    price_per_hour: usdFromMicroUsd(record.priceMicroUsdPerHour),
    created_at: new Date(record.createdAt).toISOString(),
  };
}
