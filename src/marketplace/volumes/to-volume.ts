import { usdFromMicroUsd } from '../../contract/values.ts';
import { toTimestamp } from '../contract/values.ts';
import type { Volume } from '../contract/volume.ts';
import type { Deps } from '../deps.ts';
import type { AttachmentRecord, VolumeRecord } from '../model/volume-record.ts';
import { type VolumeProvider, volumeProviderOf } from '../providers/volume-provider.ts';
import type { VolumeSnapshot } from './snapshot.ts';

/** How old a shown use of a volume may be. */
const USAGE_SHOWN_MS = 15 * 60_000;

type ShowDeps = Pick<Deps, 'providers' | 'clock'>;

export async function showVolume(
  { store: { read }, ...deps }: Pick<Deps, 'store' | 'providers' | 'clock'>,
  volumeId: string,
): Promise<Volume> {
  const record = await read.volumes.byVolumeId(volumeId);
  if (record === null) throw new Error(`the volume ${volumeId} no longer exists`);
  return toVolume(record, await read.volumes.attachmentsOf({ volumeId: record.id }), deps);
}

export function snapshotToVolume({ record, attachments }: VolumeSnapshot, deps: ShowDeps): Volume {
  const deploymentIds = attachments.map(({ deployment }) => ({ deploymentId: deployment.id }));
  return toVolume(record, deploymentIds, deps);
}

/**
 * Fields without a known value are omitted (M:), such as `usedCapacityBytes` without a recent report of the provider.
 * Volumes are attached only to deployments, so `attachedToOrderIds` is empty.
 */
export function toVolume(
  record: VolumeRecord,
  attachments: readonly Pick<AttachmentRecord, 'deploymentId'>[],
  { providers, clock }: ShowDeps,
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
    ...(virtualIp !== undefined && { virtualIp }),
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
  const mount = volumeProvider?.profile.mount;
  const endpoint = volumeProvider?.profile.regions[region]?.nfs_endpoint;
  if (mount === undefined || endpoint === undefined || !isPlain(providerVolumeId)) return {};
  const known = { region, volume: providerVolumeId, endpoint };
  const pseudopath = fill(mount.pseudopath, known);
  return {
    nfsEndpoint: endpoint,
    nfsPseudopath: pseudopath,
    mountCommand: fill(mount.command, { ...known, pseudopath }),
  };
}

/** Whether an id is safe in a command that users run in a shell. */
function isPlain(id: string | null): id is string {
  return id !== null && /^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(id);
}

function fill(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}
