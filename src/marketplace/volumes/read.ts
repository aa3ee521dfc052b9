import { usdFromMicroUsd } from '../../contract/values.ts';
import { toTimestamp } from '../contract/values.ts';
import { type Volume, type VolumeFilter, type VolumePage, volumeStatuses } from '../contract/volume.ts';
import type { Deps } from '../deps.ts';
import { type Caller, ownVolume } from '../model/own-rows.ts';
import type { AttachmentRecord, VolumeRecord } from '../model/volume-record.ts';
import { whenWritten } from '../model/waiting.ts';
import { type VolumeProvider, volumeProviderOf } from '../providers/volume-provider.ts';
import { resolveTeam } from '../teams/access.ts';

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
  const record = await ownVolume(store.read, caller, volumeId, 'read');
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
    volumes.push(
      toVolume({ record, attachments: await read.volumes.attachmentsOf({ volumeId: record.id }) }, deps),
    );
  return { volumes, total: found.total, page, limit, totalPages: Math.ceil(found.total / limit) };
}

/** How old a shown use of a volume may be. */
const USAGE_SHOWN_MS = 15 * 60_000;

export async function showVolume(
  { store: { read }, ...deps }: Pick<Deps, 'store' | 'providers' | 'clock'>,
  volumeId: string,
): Promise<Volume> {
  const record = await read.volumes.byVolumeId(volumeId);
  if (record === null) throw new Error(`the volume ${volumeId} no longer exists`);
  return toVolume({ record, attachments: await read.volumes.attachmentsOf({ volumeId: record.id }) }, deps);
}

/**
 * Fields without a known value are omitted (M:), such as `usedCapacityBytes` without a recent report of the provider.
 * Volumes are attached only to deployments, so `attachedToOrderIds` is empty.
 */
export function toVolume(
  { record, attachments }: { record: VolumeRecord; attachments: readonly AttachmentRecord[] },
  { providers, clock }: Pick<Deps, 'providers' | 'clock'>,
): Volume {
  const volumeProvider = volumeProviderOf(providers, record.providerId);
  const virtualIp = volumeProvider?.profile.regions[record.region]?.virtual_ip;
  const { startedAt, lastAttachedAt, lastDetachedAt, usage } = record;
  return {
    id: record.id,
    volumeId: record.volumeId,
    name: record.name,
    userId: record.userId,
    teamId: record.teamId,
    providerId: record.providerId,
    region: record.region,
    sizeInGb: record.sizeGb,
    ...(usage !== null &&
      clock.now() - usage.measuredAt <= USAGE_SHOWN_MS && { usedCapacityBytes: usage.usedBytes }),
    virtualIp,
    attachedToDeploymentIds: attachments.map(({ deploymentId }) => deploymentId),
    attachedToOrderIds: [],
    status: record.status,
    hourlyRate: usdFromMicroUsd(record.rateMicroUsd),
    originalHourlyRate: usdFromMicroUsd(record.originalRateMicroUsd),
    lastPriceUpdate: toTimestamp(record.lastPriceUpdateAt),
    createdAt: toTimestamp(record.createdAt),
    ...(startedAt !== null && { startedAt: toTimestamp(startedAt) }),
    ...(lastAttachedAt !== null && { lastAttachedAt: toTimestamp(lastAttachedAt) }),
    ...(lastDetachedAt !== null && { lastDetachedAt: toTimestamp(lastDetachedAt) }),
    extras: toExtras(record, volumeProvider),
    ...toMount(record, volumeProvider),
  };
}

function toExtras(record: VolumeRecord, volumeProvider: VolumeProvider | null): Record<string, unknown> {
  const cloud = volumeProvider?.profile.regions[record.region]?.clouds?.find(
    ({ id }) => id === record.cloudId,
  );
  return {
    ...(volumeProvider?.profile.type !== undefined && { volumeType: record.type }),
    ...(record.cloudId !== null && { cloudId: record.cloudId, cloudName: cloud?.name ?? record.cloudId }),
  };
}

/** M: Volume: "For `provider-a` volumes the response also includes the NFS endpoint, pseudopath and mount command." */
function toMount(
  { region, providerVolumeId }: VolumeRecord,
  volumeProvider: VolumeProvider | null,
): Pick<Volume, 'nfsEndpoint' | 'nfsPseudopath' | 'mountCommand'> {
  const { mount_pseudopath: path, mount_command: command } = volumeProvider?.profile ?? {};
  const endpoint = volumeProvider?.profile.regions[region]?.nfs_endpoint;
  if (path === undefined || command === undefined || endpoint === undefined || !isPlain(providerVolumeId))
    return {};
  const known = { region, volume: providerVolumeId, endpoint };
  const pseudopath = fill(path, known);
  return {
    nfsEndpoint: endpoint,
    nfsPseudopath: pseudopath,
    mountCommand: fill(command, { ...known, pseudopath }),
  };
}

/** Whether an id is safe in a command that users run in a shell. */
function isPlain(id: string | null): id is string {
  return id !== null && /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(id);
}

function fill(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}
