import type { Transaction } from '../ports/store.ts';
import { isActive } from '../records/deployment-record.ts';
import type { VolumeRecord } from '../records/volume-record.ts';
import { endVolumeAction } from './deployment-action.ts';
import type { SeenAttachment } from './look.ts';

/** Takes attachments away that the provider does not have. */
export async function dropAttachments(
  tx: Pick<Transaction, 'volumes' | 'deployments'>,
  { id }: VolumeRecord,
  attachments: readonly SeenAttachment[],
): Promise<void> {
  for (const { deployment } of attachments) {
    await tx.volumes.removeAttachment(id, deployment.id);
    if (isActive(deployment)) await endVolumeAction(tx, deployment);
  }
}
