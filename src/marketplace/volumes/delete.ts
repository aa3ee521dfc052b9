import { ApiError, invalid } from '../contract/errors.ts';
import { isActive } from '../model/deployment-record.ts';
import { type Caller, ownVolume } from '../model/own-rows.ts';
import type { Transaction } from '../model/store.ts';
import type { VolumeAction, VolumeRecord } from '../model/volume-record.ts';
import { volumeProviderOf } from '../providers/volume-provider.ts';
import { actionAfter, assertIdle, hasTimedOut } from './actions.ts';
import { sendOrUndo, type VolumeDeps } from './refusal.ts';
import { dropAttachments } from './release.ts';
import { transactOnVolume, type VolumeSnapshot, writeVolume } from './snapshot.ts';
import { acceptDeletion, isBeingSent, sendDeletion } from './sync/sync-deletion.ts';
import { trySyncVolume } from './sync/sync-volume.ts';

/**
 * M: DELETE /api/volumes/{volumeId}. Billing ends when the provider has accepted the deletion, or may have; the proof
 * that the volume is gone follows later. A second delete succeeds. `assertStillWanted` runs in the transaction that
 * begins the deletion, with the volume locked; if it throws, nothing changes.
 *
 * @throws {ApiError} VALIDATION_ERROR, FORBIDDEN, NOT_FOUND, CHANGE_IN_PROGRESS or PROVIDER_REFUSED: nothing changed
 */
export async function deleteVolume(
  deps: VolumeDeps,
  caller: Caller,
  volumeId: string,
  assertStillWanted: (tx: Transaction) => Promise<void> = async () => undefined,
): Promise<{ success: true }> {
  const { store, clock, options, providers } = deps;
  const known = await ownVolume(store.read, caller, volumeId);
  const { id, status } = known;
  if (status === 'deleting' || status === 'deleted') return { success: true };
  const volumeProvider = volumeProviderOf(providers, known.providerId);
  const begun = await transactOnVolume(store, id, async (tx, snapshot) => {
    if (snapshot.record.status === 'deleting' || snapshot.record.status === 'deleted') return null;
    // A deletion that was sent before is repeated by the provider worker.
    const isRepeated = snapshot.record.action?.kind === 'delete';
    assertDeletable(snapshot, clock.now(), options);
    await assertStillWanted(tx);
    if (snapshot.record.providerVolumeId === null)
      return { record: await endWithoutVolume(), isRepeated, before: null };
    const action = { kind: 'delete', since: clock.now() } as const;
    return {
      record: await writeVolume(tx, snapshot.record, { action }),
      isRepeated,
      before: snapshot.record.action,
    };

    async function endWithoutVolume(): Promise<VolumeRecord> {
      await dropAttachments(tx, snapshot.record, snapshot.attachments);
      const deletedAt = snapshot.record.deletedAt ?? clock.now();
      return writeVolume(tx, snapshot.record, { status: 'deleted', deletedAt, action: null });
    }
  });
  if (begun === null || begun.record.providerVolumeId === null) return { success: true };
  const { record, isRepeated, before } = begun;
  // Users do not pay for what they cannot delete: the volume is deleted once the configuration has the provider
  // again.
  if (volumeProvider === null) {
    await acceptDeletion(deps, record);
    return { success: true };
  }
  let isTaken = false;
  if (!isRepeated)
    await sendOrUndo('deletion', record, {
      send: async () => {
        isTaken = await sendDeletion(deps, volumeProvider, record.providerVolumeId ?? '');
      },
      undo: () => undoDeletion(deps, record, before),
    });
  await acceptDeletion(deps, record, isTaken);
  await trySyncVolume(deps, volumeProvider, id);
  deps.wake(record.providerId);
  return { success: true };
}

/** M: Volume rules, 3: "Delete requires that the volume is not attached to an active deployment." */
function assertDeletable(
  { record, attachments }: VolumeSnapshot,
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
  // Attachments to ended deployments are detached by the deletion.
  const isRepeated = record.action?.kind === 'delete' && !isBeingSent(record, now, options);
  // A resize without an answer must not keep the user paying.
  const isUnanswered = record.action?.kind === 'resize' && hasTimedOut(record.action, now, options);
  if (record.action?.kind !== 'detach' && !isRepeated && !isUnanswered) assertIdle(record, now, options);
}

/**
 * Undoes a deletion that the provider refused. Returns false if it was accepted meanwhile and goes on. A creation or
 * a resize that it replaced becomes the action again.
 */
async function undoDeletion(
  { store, clock }: VolumeDeps,
  { id }: VolumeRecord,
  before: VolumeAction | null,
): Promise<boolean> {
  return transactOnVolume(store, id, async (tx, { record, attachments }) => {
    if (record.status === 'deleting' || record.status === 'deleted') return false;
    const isReplaced = before?.kind === 'create' || before?.kind === 'resize';
    const resumed = isReplaced && record.action?.kind === 'delete' ? before : null;
    await writeVolume(tx, record, {
      action: resumed ?? actionAfter(record, ['delete'], attachments, clock.now()),
    });
    return true;
  });
}
