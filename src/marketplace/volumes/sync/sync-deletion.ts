import { ProviderError } from '../../../client/orchestrator-client.ts';
import type { Volume as ProviderVolume } from '../../../contract/volume.ts';
import { endBilling } from '../../ledger/bill.ts';
import { logNames, type VolumeRecord } from '../../model/volume-record.ts';
import { admitLoss, logLossAlarm } from '../../providers/loss-cap.ts';
import type { VolumeProvider } from '../../providers/volume-provider.ts';
import type { VolumeDeps } from '../refusal.ts';
import { dropAttachments } from '../release.ts';
import { transactOnVolume, writeVolume } from '../snapshot.ts';

/**
 * Whether it is not proved yet that the provider has deleted it. One that is `deleted` for its user may be: a create
 * that was given up made it late.
 */
export function isBeingDeleted({ status, cleanup }: VolumeRecord): boolean {
  return status === 'deleting' || cleanup === 'wanted';
}

/**
 * Continues an accepted deletion until a 404 of the provider proves that the volume is gone. The user no longer pays
 * for it.
 *
 * @throws {ProviderError}
 */
export async function syncDeletion(
  deps: VolumeDeps,
  volumeProvider: VolumeProvider,
  record: VolumeRecord,
): Promise<void> {
  const { providerVolumeId } = record;
  if (providerVolumeId === null) return endDeletion(deps, record);
  const { client } = volumeProvider.provider;
  const call = { timeoutMs: deps.options.polling.callTimeoutMs };
  try {
    const volume = await client.getVolume(providerVolumeId, call);
    const isTaken =
      volume.status === 'DELETING' || (await sendDeletion(deps, volumeProvider, providerVolumeId, volume));
    if (isTaken) await writeTaken(deps, record);
    if (volume.status !== 'DELETING') await client.getVolume(providerVolumeId, call);
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    if (error.problem === 'not_found') return endDeletion(deps, record);
    await alarm(deps, record, `${error.problem}: ${error.message}`);
    throw error;
  }
  await alarm(deps, record, 'the provider still has it');
}

/**
 * From now on a 404 proves the deletion. The provider has shown the volume, so it no longer counts as a held loss.
 */
async function writeTaken(
  { store, clock }: VolumeDeps,
  { id, deletionTakenAt }: VolumeRecord,
): Promise<void> {
  if (deletionTakenAt !== null) return;
  await transactOnVolume(store, id, async (tx, { record }) => {
    if (!isBeingDeleted(record)) return;
    await writeVolume(tx, record, { deletionTakenAt: clock.now() });
    await tx.losses.release(id);
  });
}

/** The most calls that {@link sendDeletion} makes. */
const CALLS_OF_A_DELETION = 4;

/** Whether the request that began the deletion may still be waiting for the provider. */
export function isBeingSent(
  { action }: VolumeRecord,
  now: number,
  { polling }: VolumeDeps['options'],
): boolean {
  return action?.kind === 'delete' && now - action.since < CALLS_OF_A_DELETION * polling.callTimeoutMs;
}

/**
 * Handles a deletion whose answer was never written. The provider may have accepted it, so it counts as accepted and
 * continues until a 404 proves it.
 */
export async function settleDeletion(deps: VolumeDeps, record: VolumeRecord): Promise<void> {
  if (!isBeingSent(record, deps.clock.now(), deps.options)) await acceptDeletion(deps, record);
}

/**
 * Sends the deletion. Attachments that are left on instances are detached first (O: "force-detaches … instead of
 * failing"); if that takes time, the deletion is sent again later. Returns whether the provider accepted the
 * deletion.
 *
 * @throws {ProviderError}
 */
export async function sendDeletion(
  { options }: Pick<VolumeDeps, 'options'>,
  { provider: { client } }: VolumeProvider,
  providerVolumeId: string,
  known?: ProviderVolume,
): Promise<boolean> {
  const call = { timeoutMs: options.polling.callTimeoutMs };
  try {
    return await client.deleteVolume(providerVolumeId, call);
  } catch (error) {
    if (!(error instanceof ProviderError) || error.problem !== 'conflict') throw error;
    const { attached_instance_ids: left = [] } = known ?? (await client.getVolume(providerVolumeId, call));
    if (left.length === 0) throw error;
    await client.detachVolume(providerVolumeId, left, call);
    return deleteDetached();
  }

  async function deleteDetached(): Promise<boolean> {
    try {
      return await client.deleteVolume(providerVolumeId, call);
    } catch (error) {
      if (!(error instanceof ProviderError) || error.problem !== 'conflict') throw error;
      return false;
    }
  }
}

/**
 * Ends a deletion after a 404. A volume that is gone although the provider never accepted its deletion counts as a
 * loss.
 */
async function endDeletion(deps: VolumeDeps, { id, providerId }: VolumeRecord): Promise<void> {
  const admission = await transactOnVolume(
    deps.store,
    id,
    async (tx, { record, attachments }) => {
      if (!isBeingDeleted(record)) return null;
      const isNotFound = record.providerVolumeId !== null && record.deletionTakenAt === null;
      const admission = isNotFound
        ? await admitLoss(deps, tx, { subjectId: id, kind: 'volume', providerId })
        : null;
      if (admission?.isAdmitted === false) return admission;
      await writeVolume(tx, record, { status: 'deleted', cleanup: 'done', action: null });
      await tx.losses.release(id);
      await dropAttachments(tx, record, attachments);
      return null;
    },
    (tx) => tx.losses.lock(providerId),
  );
  if (admission !== null && admission.alarm !== null) logLossAlarm(deps.log, admission.alarm);
}

/** A deletion is never given up. While it lacks its proof, an error is logged at most once per `actionMs`. */
async function alarm(
  { store, clock, options, log }: VolumeDeps,
  volume: VolumeRecord,
  reason: string,
): Promise<void> {
  const now = clock.now();
  const since = Math.max(volume.observedAt ?? 0, volume.deletedAt ?? 0);
  if (now - since < options.polling.actionMs) return;
  const { providerId, providerVolumeId } = volume;
  log.error(
    { ...logNames(volume), provider: providerId, providerVolumeId, reason },
    'a deleted volume may still exist at the provider and cost money: its deletion is retried until the provider confirms it',
  );
  await store.transact(async (tx) => {
    const record = await tx.volumes.byId(volume.id);
    if (record !== null && isBeingDeleted(record)) await writeVolume(tx, record, { observedAt: now });
  });
}

/**
 * The provider has accepted the deletion of a volume, or may have: billing ends now. `isTaken`: the provider
 * confirmed it.
 */
export async function acceptDeletion(
  deps: Pick<VolumeDeps, 'store' | 'clock' | 'random'>,
  { id }: VolumeRecord,
  isTaken = false,
): Promise<void> {
  const { store, clock } = deps;
  await transactOnVolume(store, id, async (tx, { record }) => {
    if (record.status === 'deleted') return;
    const deletionTakenAt = isTaken ? clock.now() : record.deletionTakenAt;
    if (record.status === 'deleting') {
      if (isTaken) await writeVolume(tx, record, { deletionTakenAt });
      return;
    }
    // One that broke, and that the provider did not have, has not cost anything since.
    const deletedAt = record.deletedAt ?? (await endBilling(deps, tx, 'volume', id, clock.now()));
    await writeVolume(tx, record, { status: 'deleting', deletedAt, cleanup: 'wanted', deletionTakenAt });
  });
}
