import { ProviderError } from '../../../client/orchestrator-client.ts';
import type { CreateVolumeRequest } from '../../../contract/volume.ts';
import { logNames, type VolumeRecord } from '../../model/volume-record.ts';
import type { Provider } from '../../providers/provider.ts';
import type { VolumeProvider } from '../../providers/volume-provider.ts';
import { ABOUT_THIS_CALL, isDefinite, type VolumeDeps } from '../refusal.ts';
import { dropAttachments } from '../release.ts';
import { transactOnVolume, type VolumeChange, writeVolume } from '../snapshot.ts';

/** Berth keeps an idempotency key for 24 hours; one hour is left as a margin. */
const KEY_IS_KNOWN_MS = 23 * 3_600_000;

/**
 * Continues the create of a volume whose id at the provider is not known. O: has no list of volumes, so a create
 * whose answer was lost cannot be looked up. It is sent again, with the same key, only to providers that support
 * idempotency keys.
 */
export async function syncCreation(
  deps: VolumeDeps,
  volumeProvider: VolumeProvider,
  record: VolumeRecord,
): Promise<void> {
  const { clock, options, log } = deps;
  const now = clock.now();
  const { createSentAt, providerId, providerName } = record;
  const since = createSentAt ?? record.createdAt;
  // The request that accepted or sent it may still be running.
  if (mayBeRunning(options, since, now)) return;
  // The catalog says whether the provider supports keys, so a process that has just started waits for it.
  if (volumeProvider.provider.catalog.refreshedAt === null) return;
  if (createSentAt !== null && !canRepeatCreation(volumeProvider.provider, record, now)) {
    await giveUpCreation(deps, record, createSentAt);
    return;
  }
  try {
    await sendCreation(deps, volumeProvider, record, now);
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    const fields = { ...logNames(record), provider: providerId, name: providerName, problem: error.problem };
    log.debug(fields, 'a volume could not be created yet');
  }
}

/** Whether sending the create again returns the first volume instead of making a second one. */
export function canRepeatCreation({ catalog }: Provider, { createdAt }: VolumeRecord, now: number): boolean {
  const isBerth = [...catalog.offers.values()].some(({ extras }) => typeof extras['berth'] === 'object');
  return isBerth && now - createdAt < KEY_IS_KNOWN_MS;
}

/**
 * Sends the create once, at `sentAt`: of two concurrent calls the second does nothing. A definite refusal ends the
 * volume.
 *
 * @throws {ProviderError}
 */
export async function sendCreation(
  deps: VolumeDeps,
  { provider, profile }: VolumeProvider,
  record: VolumeRecord,
  sentAt: number,
): Promise<void> {
  const { store, options } = deps;
  const isClaimed = await store.transact(async (tx) => {
    const current = await tx.volumes.byId(record.id);
    if (current === null || current.createSentAt !== record.createSentAt || current.status !== 'creating')
      return false;
    await writeVolume(tx, current, { createSentAt: sentAt });
    return true;
  });
  if (!isClaimed) return;
  const cloud = profile.regions[record.region]?.clouds?.find(({ id }) => id === record.cloudId);
  const type = cloud?.type ?? profile.type;
  const request: CreateVolumeRequest = {
    name: record.providerName,
    size_gb: record.sizeGb,
    region: record.region,
    ...(type !== undefined && { type }),
  };
  try {
    const { id } = await provider.client.createVolume(request, record.id, {
      timeoutMs: options.polling.callTimeoutMs,
    });
    await recordCreated(deps, record, id);
  } catch (error) {
    if (isRefused(deps, error, record, sentAt)) await endWithoutVolume(deps, record, sentAt);
    throw error;
  }
}

/** Whether nothing was made, neither by this request nor by an earlier one that may arrive late. */
function isRefused(
  { options }: VolumeDeps,
  error: unknown,
  { createSentAt }: VolumeRecord,
  sentAt: number,
): boolean {
  if (!(error instanceof ProviderError) || !isDefinite(error)) return false;
  if (createSentAt === null) return true;
  return !ABOUT_THIS_CALL.includes(error.problem) && !mayBeRunning(options, createSentAt, sentAt);
}

/** Whether a request that was sent at `sentAt` may still be on its way to the provider, or be worked on there. */
function mayBeRunning({ polling }: VolumeDeps['options'], sentAt: number, now: number): boolean {
  return now - sentAt < 2 * polling.callTimeoutMs;
}

/** The provider has made the volume. If the create was given up meanwhile, the volume is deleted there. */
async function recordCreated(
  { store, clock, log }: VolumeDeps,
  { id, providerId }: VolumeRecord,
  providerVolumeId: string,
): Promise<void> {
  const { known, outcome } = await transactOnVolume(store, id, async (tx, { record }) => {
    if (record.providerVolumeId !== null) return { known: record, outcome: 'recorded' };
    const isWaitedFor = record.status === 'creating';
    const deletedAt = record.deletedAt ?? clock.now();
    await writeVolume(tx, record, {
      providerVolumeId,
      ...(!isWaitedFor && { cleanup: 'wanted', deletedAt }),
      ...(record.status === 'error' && { status: 'deleting' }),
    });
    return { known: record, outcome: isWaitedFor ? 'created' : 'too late' };
  });
  const fields = { ...logNames(known), provider: providerId, providerVolumeId };
  if (outcome === 'too late')
    log.warn(fields, 'the provider has made a volume after its create was given up: it is deleted there');
  if (outcome === 'recorded' && known.providerVolumeId !== providerVolumeId)
    log.error(
      { ...fields, recorded: known.providerVolumeId },
      'the provider has made a second volume for one create: delete it there',
    );
}

/** The provider did not make the volume, so it never cost anything. */
async function endWithoutVolume(deps: VolumeDeps, record: VolumeRecord, sentAt: number): Promise<void> {
  await end(deps, record, { status: 'deleted', deletedAt: deps.clock.now() }, sentAt);
}

/**
 * It is not known whether the provider made the volume. The user pays nothing, and an operator has to check. Returns
 * whether the volume was ended.
 */
export async function giveUpCreation(
  deps: VolumeDeps,
  record: VolumeRecord,
  sentAt: number,
): Promise<boolean> {
  const { providerId, providerName } = record;
  if (!(await end(deps, record, { status: 'error' }, sentAt))) return false;
  deps.log.error(
    { ...logNames(record), provider: providerId, name: providerName },
    'the answer to the create of a volume was lost: check the provider for a volume of this name, and delete it there',
  );
  return true;
}

/**
 * Ends a volume that is not known to be made, and drops its attachments; returns whether it did. A process that was
 * paused knows only of its own call: where another one has sent the create since `sentAt`, that one decides.
 */
async function end(
  { store }: VolumeDeps,
  { id }: VolumeRecord,
  fields: VolumeChange,
  sentAt: number,
): Promise<boolean> {
  return transactOnVolume(store, id, async (tx, { record, attachments }) => {
    if (record.providerVolumeId !== null || record.status !== 'creating') return false;
    if (record.createSentAt !== sentAt) return false;
    await writeVolume(tx, record, { ...fields, action: null });
    await dropAttachments(tx, record, attachments);
    return true;
  });
}
