import { type Volume, type VolumeFilter, type VolumePage, volumeStatuses } from '../contract/volume.ts';
import type { Deps } from '../deps.ts';
import { type Caller, ownVolume } from '../model/own-rows.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import { whenWritten } from '../model/waiting.ts';
import { volumeProviderOf } from '../providers/volume-provider.ts';
import { resolveTeam } from '../teams/access.ts';
import { showVolume, toVolume } from './to-volume.ts';

/** How long a read waits for the worker to poll the provider. */
const FRESH_WITHIN_MS = 2_000;

/**
 * M: "Volume with fresh usage data": the worker reads it; if that takes long, the last known state is shown.
 * @throws {ApiError} NOT_FOUND or FORBIDDEN
 */
export async function readVolume(
  deps: Pick<Deps, 'store' | 'clock' | 'providers'>,
  caller: Caller,
  volumeId: string,
): Promise<Volume> {
  const { store, clock, providers } = deps;
  const record = await ownVolume(store.read, caller, volumeId);
  const now = clock.now();
  if (isShown(record) && volumeProviderOf(providers, record.providerId) !== null) {
    await store.transact((tx) => tx.signals.wake(record.providerId, record.id));
    await whenWritten(deps, record.id, now + FRESH_WITHIN_MS, async () => {
      const seen = await store.read.volumes.byId(record.id);
      return seen === null || (seen.observedAt ?? 0) >= now ? true : null;
    });
  }
  return showVolume(deps, volumeId);
}

/** Whether a fresh answer from the provider could change the shown volume. */
function isShown({ status, providerVolumeId }: VolumeRecord): boolean {
  return providerVolumeId !== null && status !== 'deleted' && status !== 'deleting' && status !== 'error';
}

const SHOWN = volumeStatuses.filter((status) => status !== 'deleted');

/** M: GET /api/volumes: of one team, the newest first. @throws {ApiError} FORBIDDEN or NOT_FOUND */
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
    volumes.push(toVolume(record, await read.volumes.attachmentsOf({ volumeId: record.id }), deps));
  return { volumes, total: found.total, page, limit, totalPages: Math.ceil(found.total / limit) };
}
