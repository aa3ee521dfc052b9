import { ProviderError } from '../../client/orchestrator-client.ts';
import type { Caller } from '../caller.ts';
import { ApiError, invalid } from '../contract/errors.ts';
import type { VolumeRecord } from '../records/volume-record.ts';
import { acceptDeletion } from './accept-deletion.ts';
import { ownVolume } from './access.ts';
import { advanceQuietly } from './advance.ts';
import { sendDeletion } from './advance-deletion.ts';
import { assertIdle } from './assert-idle.ts';
import type { VolumeDeps } from './deps.ts';
import { dropAttachments } from './drop-attachments.ts';
import { isActive, type SeenVolume, transactOnVolume } from './look.ts';
import { isDefinite, refusal } from './refusal.ts';
import { sellerOf } from './seller.ts';
import { writeVolume } from './write.ts';

/**
 * M: DELETE /api/volumes/{volumeId}. It costs nothing any more from the moment at which the provider has accepted it,
 * or may have; that it is gone there is proved afterwards. A second delete is success.
 *
 * @throws {ApiError} VALIDATION_ERROR, FORBIDDEN, NOT_FOUND, CHANGE_IN_PROGRESS or PROVIDER_REFUSED: nothing changed
 */
export async function deleteVolume(
  deps: VolumeDeps,
  caller: Caller,
  volumeId: string,
): Promise<{ success: true }> {
  const { store, clock, options, providers } = deps;
  const known = await ownVolume(store.read, caller, volumeId);
  const { id, status } = known;
  if (status === 'deleting' || status === 'deleted') return { success: true };
  const seller = sellerOf(providers, known.providerId);
  const record = await transactOnVolume(store, id, async (tx, seen) => {
    assertDeletable(seen, clock.now(), options);
    if (seen.record.providerVolumeId === null) return endWithoutVolume();
    return writeVolume(tx, seen.record, { action: { kind: 'delete', since: clock.now() } });

    async function endWithoutVolume(): Promise<VolumeRecord> {
      await dropAttachments(tx, seen.record, seen.attachments);
      return writeVolume(tx, seen.record, { status: 'deleted', deletedAt: clock.now(), action: null });
    }
  });
  if (record.providerVolumeId === null) return { success: true };
  // Nobody pays for what they cannot be rid of: it is deleted there once the configuration has the provider again.
  if (seller === null) {
    await acceptDeletion(deps, record);
    return { success: true };
  }
  try {
    await sendDeletion(deps, seller, record.providerVolumeId);
  } catch (error) {
    if (!(error instanceof ProviderError) || isDefinite(error)) {
      await endAction(deps, record);
      throw refusal('deletion', record, error);
    }
  }
  await acceptDeletion(deps, record);
  await advanceQuietly(deps, seller, id);
  deps.wake(record.providerId);
  return { success: true };
}

/** M: Volume rules, 3: "Delete requires that the volume is not attached to an active deployment." */
function assertDeletable(
  { record, attachments }: SeenVolume,
  now: number,
  options: VolumeDeps['options'],
): void {
  const holders = attachments.filter(({ deployment }) => isActive(deployment));
  if (holders.length > 0)
    throw invalid('', 'The volume is attached to an active deployment; detach it first.', {
      deploymentIds: holders.map(({ deployment }) => deployment.id),
    });
  if (record.status === 'creating' && record.createSentAt !== null && record.providerVolumeId === null)
    throw new ApiError('CHANGE_IN_PROGRESS', 'The volume is being created. Wait a moment and try again.');
  // What is left on deployments that are over is detached on the way.
  if (record.action?.kind !== 'detach') assertIdle(record, now, options);
}

async function endAction({ store }: VolumeDeps, { id }: VolumeRecord): Promise<void> {
  await transactOnVolume(store, id, async (tx, { record }) => {
    if (record.action?.kind === 'delete') await writeVolume(tx, record, { action: null });
  });
}
