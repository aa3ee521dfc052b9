import type { Caller } from '../caller.ts';
import { type Volume, type VolumeFilter, type VolumePage, volumeStatuses } from '../contract/volume.ts';
import type { Deps } from '../deps.ts';
import { resolveTeam } from '../teams/access.ts';
import { toVolume } from './to-volume.ts';

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
