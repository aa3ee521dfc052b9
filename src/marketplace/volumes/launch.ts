import { ApiError, invalid } from '../contract/errors.ts';
import type { Deps } from '../deps.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { newIntent } from '../model/intent.ts';
import { type Caller, ownVolume } from '../model/own-rows.ts';
import type { Reader, Transaction } from '../model/store.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import type { Provider } from '../providers/provider.ts';
import { toVolumeProvider } from '../providers/volume-provider.ts';
import { assertIdle, putIntent } from './intents.ts';
import { assertFits, assertRoom } from './limits.ts';

const FIELD = 'volumeIds';

/**
 * M: Per-provider `volumeIds` rules.
 * @throws {ApiError} VALIDATION_ERROR, FORBIDDEN, NOT_FOUND or CHANGE_IN_PROGRESS, "before anything is created"
 */
export async function planLaunchVolumes(
  { clock, options }: Pick<Deps, 'clock' | 'options'>,
  read: Pick<Reader, 'volumes' | 'teams'>,
  wanted: {
    caller: Caller;
    teamId: string;
    provider: Provider;
    region: string;
    volumeIds: readonly string[];
  },
): Promise<VolumeRecord[]> {
  const { caller, teamId, provider, region, volumeIds } = wanted;
  if (volumeIds.length === 0) return [];
  const volumeProvider = toVolumeProvider(provider);
  if (volumeProvider === null)
    throw invalid(FIELD, `${provider.profile.name} does not offer volumes; omit it`);
  const repeated = volumeIds.find((id, index) => volumeIds.indexOf(id) !== index);
  if (repeated !== undefined) throw invalid(FIELD, `${repeated} is given twice`);
  assertRoom(FIELD, volumeProvider, volumeIds.length);
  const volumes = new Map<string, VolumeRecord>();
  // Every launch locks volumes in one order, so that two launches with the same volumes cannot deadlock.
  for (const volumeId of volumeIds.toSorted()) {
    const volume = await ownVolume(read, caller, volumeId);
    const existing = await read.volumes.attachmentsOf({ volumeId: volume.id });
    assertFits(FIELD, volumeProvider, volume, existing, { providerId: provider.id, region, teamId });
    if (volume.providerVolumeId === null)
      throw new ApiError('CHANGE_IN_PROGRESS', `${volumeId} does not exist yet; try again in a moment.`);
    // A shared volume may be attached to a second instance while it is being attached to a first.
    assertIdle(volume, volumeProvider.profile.shareable ? [] : existing, clock.now(), options);
    volumes.set(volumeId, volume);
  }
  return volumeIds.flatMap((volumeId) => volumes.get(volumeId) ?? []);
}

/** Attaches volumes that were planned in this transaction, so that no other request can take them. */
export async function attachAtLaunch(
  tx: Pick<Transaction, 'volumes'>,
  { id: deploymentId, userId: by }: Pick<DeploymentRecord, 'id' | 'userId'>,
  volumes: readonly VolumeRecord[],
  at: number,
): Promise<void> {
  for (const volume of volumes) {
    const intent = newIntent(volume, { kind: 'attach', by, since: at, until: null });
    await putIntent(tx, volume, { ...intent, deploymentId }, { status: 'attached' });
  }
}
