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
 * Goes on with a deletion that was accepted, until the provider proves with a 404 that it has no such volume. Its cost
 * there is not the user's any more.
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

/** From now on a 404 is the proof of it. The provider has shown the volume: it is not held any more. */
async function writeTaken(
  { store, clock }: VolumeDeps,
  { id, deletionTakenAt }: VolumeRecord,
): Promise<void> {
  if (deletionTakenAt !== null) return;
  await transactOnVolume(store, id, async (tx, { record }) => {
    if (record.status !== 'deleting') return;
    await writeVolume(tx, record, { deletionTakenAt: clock.now() });
    await tx.losses.release(id);
  });
}

/** The most calls that {@link sendDeletion} makes. */
const CALLS_OF_A_DELETION = 4;

/** Whether whoever began the deletion may still wait for what the provider says to it. */
export function isBeingSent(
  { action }: VolumeRecord,
  now: number,
  { polling }: VolumeDeps['options'],
): boolean {
  return action?.kind === 'delete' && now - action.since < CALLS_OF_A_DELETION * polling.callTimeoutMs;
}

/**
 * A deletion that a request began and of which nobody wrote the answer: the provider may have taken it, whatever it
 * still shows. It counts as accepted, and goes on until it is proved.
 */
export async function settleDeletion(deps: VolumeDeps, record: VolumeRecord): Promise<void> {
  if (!isBeingSent(record, deps.clock.now(), deps.options)) await acceptDeletion(deps, record);
}

/**
 * Asks for the deletion. Records that linger on instances are detached first (O: "force-detaches … instead of failing");
 * a provider that takes its time for that is asked again later. Says whether the provider has it and deletes it.
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

/** A volume that its provider denies, and never said that it deletes, counts as a loss. */
async function endDeletion(deps: VolumeDeps, { id, providerId }: VolumeRecord): Promise<void> {
  const admission = await transactOnVolume(
    deps.store,
    id,
    async (tx, { record, attachments }) => {
      if (record.status !== 'deleting') return null;
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

/** Never given up: a deletion that is not proved is told of again and again, but not with every look. */
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
    'a volume that was deleted is not proved to be gone, and may cost: its deletion is tried for ever',
  );
  await store.transact(async (tx) => {
    const record = await tx.volumes.byId(volume.id);
    if (record?.status === 'deleting') await writeVolume(tx, record, { observedAt: now });
  });
}

/**
 * The provider has taken the deletion of a volume, or may have: it costs nothing from now on. `isTaken`: it said that it
 * has the volume and deletes it.
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
