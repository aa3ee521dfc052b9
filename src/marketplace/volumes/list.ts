import type { Caller } from '../caller.ts';
import { invalid } from '../contract/errors.ts';
import { type Volume, type VolumeStatus, volumeFilters, volumeStatuses } from '../contract/volume.ts';
import type { Deps } from '../deps.ts';
import { resolveTeam } from '../teams/access.ts';
import { toVolume } from './to-volume.ts';

interface VolumePage {
  volumes: Volume[];
  total: number;
  page: number;
  limit: number;
  totalPages: number;
}

const MAX_LIMIT = 100;

/**
 * M: GET /api/volumes: one team's, the newest first. Without `status` all but the deleted ones.
 *
 * @throws {ApiError} VALIDATION_ERROR, FORBIDDEN or NOT_FOUND
 */
export async function listVolumes(
  deps: Pick<Deps, 'store' | 'clock' | 'random' | 'providers'>,
  caller: Caller,
  query: {
    teamId?: string | undefined;
    page?: number | undefined;
    limit?: number | undefined;
    status?: string | undefined;
  },
): Promise<VolumePage> {
  const { page = 1, limit = 20, status } = query;
  const statuses = toStatuses(status);
  if (!Number.isSafeInteger(page) || page < 1) throw invalid('page', 'expected a whole number from 1 on');
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw invalid('limit', `expected a whole number from 1 to ${MAX_LIMIT}`);
  const teamId = await resolveTeam(deps, caller, query.teamId);
  const { read } = deps.store;
  const found = await read.volumes.page({ teamId, statuses, offset: (page - 1) * limit, limit });
  const volumes: Volume[] = [];
  for (const record of found.volumes)
    volumes.push(toVolume(record, await read.volumes.attachmentsOf({ volumeId: record.id }), deps.providers));
  return { volumes, total: found.total, page, limit, totalPages: Math.ceil(found.total / limit) };
}

function toStatuses(text: string | undefined): readonly VolumeStatus[] {
  if (text === undefined) return volumeStatuses.filter((status) => status !== 'deleted');
  const filter = volumeFilters.find((name) => name === text);
  if (filter === undefined) throw invalid('status', `expected one of ${volumeFilters.join(', ')}`);
  return [filter];
}
