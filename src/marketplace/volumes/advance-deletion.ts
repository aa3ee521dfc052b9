import { ProviderError } from '../../client/orchestrator-client.ts';
import type { Volume as ProviderVolume } from '../../contract/volume.ts';
import type { VolumeRecord } from '../records/volume-record.ts';
import type { VolumeDeps } from './deps.ts';
import { dropAttachments } from './drop-attachments.ts';
import { transactOnVolume } from './look.ts';
import type { VolumeSeller } from './seller.ts';
import { writeVolume } from './write.ts';

/**
 * Goes on with a deletion that was accepted, until the provider proves with a 404 that it has no such volume. Its cost
 * there is not the user's any more.
 *
 * @throws {ProviderError}
 */
export async function advanceDeletion(
  deps: VolumeDeps,
  seller: VolumeSeller,
  record: VolumeRecord,
): Promise<void> {
  const { providerVolumeId } = record;
  if (providerVolumeId === null) return endDeletion(deps, record);
  const { client } = seller.provider;
  const call = { timeoutMs: deps.options.polling.callTimeoutMs };
  try {
    const volume = await client.getVolume(providerVolumeId, call);
    if (volume.status === 'DELETING') return alarm(deps, record);
    await sendDeletion(deps, seller, providerVolumeId, volume);
    await client.getVolume(providerVolumeId, call);
  } catch (error) {
    if (error instanceof ProviderError && error.problem === 'not_found') return endDeletion(deps, record);
    await alarm(deps, record);
    throw error;
  }
}

/**
 * Asks for the deletion. Records that linger on instances are detached first (O: "force-detaches … instead of failing").
 *
 * @throws {ProviderError}
 */
export async function sendDeletion(
  { options }: Pick<VolumeDeps, 'options'>,
  { provider: { client } }: VolumeSeller,
  providerVolumeId: string,
  known?: ProviderVolume,
): Promise<void> {
  const call = { timeoutMs: options.polling.callTimeoutMs };
  try {
    await client.deleteVolume(providerVolumeId, call);
  } catch (error) {
    if (!(error instanceof ProviderError) || error.problem !== 'conflict') throw error;
    const { attached_instance_ids: left = [] } = known ?? (await client.getVolume(providerVolumeId, call));
    if (left.length === 0) throw error;
    await client.detachVolume(providerVolumeId, left, call);
    await client.deleteVolume(providerVolumeId, call);
  }
}

async function endDeletion({ store }: VolumeDeps, { id }: VolumeRecord): Promise<void> {
  await transactOnVolume(store, id, async (tx, { record, attachments }) => {
    if (record.status !== 'deleting') return;
    await writeVolume(tx, record, { status: 'deleted', cleanup: 'done', action: null });
    await dropAttachments(tx, record, attachments);
  });
}

/** Never given up: a deletion that is not proved is told of again and again, but not with every look. */
async function alarm({ store, clock, options, log }: VolumeDeps, seen: VolumeRecord): Promise<void> {
  const now = clock.now();
  const since = Math.max(seen.observedAt ?? 0, seen.deletedAt ?? 0);
  if (now - since < options.polling.actionMs) return;
  const { volumeId, providerId, providerVolumeId } = seen;
  log.error({ volumeId, providerId, providerVolumeId }, 'a volume is still there although it was deleted');
  await store.transact(async (tx) => {
    const record = await tx.volumes.byId(seen.id);
    if (record?.status === 'deleting') await writeVolume(tx, record, { observedAt: now });
  });
}
