import { ProviderError } from '../../client/orchestrator-client.ts';
import { type Volume, type VolumeFilter, type VolumePage, volumeStatuses } from '../contract/volume.ts';
import type { Deps } from '../deps.ts';
import { type Caller, ownVolume } from '../model/own-rows.ts';
import { logNames } from '../model/volume-record.ts';
import { volumeProviderOf } from '../providers/volume-provider.ts';
import { resolveTeam } from '../teams/access.ts';
import type { VolumeDeps } from './refusal.ts';
import { readVolumeSnapshot } from './snapshot.ts';
import { applyVolumeObservation } from './sync/apply-observation.ts';
import { observeVolume } from './sync/sync-volume.ts';
import { showVolume, toVolume } from './to-volume.ts';

/**
 * M: GET /api/volumes/{volumeId}: "Volume with fresh usage data": the provider is asked; if it does not answer, the
 * last known state is shown.
 *
 * @throws {ApiError} NOT_FOUND or FORBIDDEN
 */
export async function readVolume(deps: VolumeDeps, caller: Caller, volumeId: string): Promise<Volume> {
  const { id } = await ownVolume(deps.store.read, caller, volumeId);
  await refresh(deps, id);
  return showVolume(deps, volumeId);
}

async function refresh(deps: VolumeDeps, id: string): Promise<void> {
  const snapshot = await readVolumeSnapshot(deps.store.read, id);
  if (snapshot === null) return;
  const { status, providerId } = snapshot.record;
  const volumeProvider = volumeProviderOf(deps.providers, providerId);
  if (volumeProvider === null || status === 'deleted' || status === 'deleting' || status === 'error') return;
  try {
    const observation = await observeVolume(deps, volumeProvider, snapshot);
    if (observation !== null) await applyVolumeObservation(deps, volumeProvider, snapshot, observation);
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    deps.log.debug(
      { ...logNames(snapshot.record), provider: providerId, problem: error.problem },
      'a volume could not be refreshed: its last known state is shown',
    );
  }
}

const SHOWN = volumeStatuses.filter((status) => status !== 'deleted');

/**
 * M: GET /api/volumes: one team's, the newest first. Without `status` all but the deleted ones.
 *
 * @throws {ApiError} FORBIDDEN or NOT_FOUND
 */
export async function listVolumes(
  deps: Pick<Deps, 'store' | 'clock' | 'random' | 'providers'>,
  caller: Caller,
  query: {
    teamId?: string | undefined;
    page?: number | undefined;
    limit?: number | undefined;
    status?: VolumeFilter | undefined;
  },
): Promise<VolumePage> {
  const { page = 1, limit = 20, status } = query;
  const statuses = status === undefined ? SHOWN : [status];
  const teamId = await resolveTeam(deps, caller, query.teamId);
  const { read } = deps.store;
  const found = await read.volumes.page({ teamId, statuses, offset: (page - 1) * limit, limit });
  const volumes: Volume[] = [];
  for (const record of found.volumes)
    volumes.push(toVolume(record, await read.volumes.attachmentsOf({ volumeId: record.id }), deps.providers));
  return { volumes, total: found.total, page, limit, totalPages: Math.ceil(found.total / limit) };
}
