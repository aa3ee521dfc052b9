import { assertTransition } from '../../contract/transitions.ts';
import { type VolumeStatus, volumeTransitions } from '../../contract/volume.ts';
import type { Transaction } from '../model/store.ts';
import type { Attachment, VolumeRecord } from '../model/volume-record.ts';

/** The one writer of a volume's status. @throws {IllegalTransition} if the table has no such edge. */
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

/** Brings a volume that exists on the platform to the status that its attachment records give it. */
export async function followAttachments(tx: Transaction, record: VolumeRecord): Promise<VolumeRecord> {
  if (record.status === 'CREATING' || record.status === 'DELETING' || record.status === 'ERROR')
    return record;
  return transitionVolume(tx, record, statusFromAttachments(await tx.volumes.attachmentsOfVolume(record.id)));
}

function statusFromAttachments(attachments: readonly Attachment[]): VolumeStatus {
  const has = (state: Attachment['state']): boolean =>
    attachments.some((attachment) => attachment.state === state);
  if (has('detaching')) return 'DETACHING';
  if (has('attaching')) return 'ATTACHING';
  return has('attached') ? 'ATTACHED' : 'AVAILABLE';
}
