import { ProviderError } from '../../../client/orchestrator-client.ts';
import type { Clock } from '../../../ports/clock.ts';
import { logNames, type VolumeAction, type VolumeRecord } from '../../model/volume-record.ts';
import type { Provider } from '../../providers/provider.ts';
import type { VolumeProvider } from '../../providers/volume-provider.ts';
import { endResize, hasTimedOut } from '../actions.ts';
import type { VolumeDeps } from '../refusal.ts';
import { isInTransit, readVolumeSnapshot, transactOnVolume, type VolumeSnapshot } from '../snapshot.ts';
import { applyVolumeObservation, type VolumeObservation } from './apply-observation.ts';
import { syncAttachments } from './sync-attachments.ts';
import { syncCreation } from './sync-creation.ts';
import { isBeingDeleted, settleDeletion, syncDeletion } from './sync-deletion.ts';

const POLL_EVERY_MS = 1_500;

/**
 * Reads one volume from its provider, applies what it shows, and requests the changes that are still missing.
 *
 * @throws {ProviderError}
 */
async function syncVolume(
  deps: VolumeDeps,
  volumeProvider: VolumeProvider,
  snapshot: VolumeSnapshot,
): Promise<void> {
  const { record } = snapshot;
  if (isBeingDeleted(record)) return syncDeletion(deps, volumeProvider, record);
  if (record.status === 'deleted') return;
  if (record.action?.kind === 'delete') return settleDeletion(deps, record);
  if (isSettled(snapshot) || isWaitingForLaunch(snapshot)) return;
  if (record.providerVolumeId === null) return syncCreation(deps, volumeProvider, record);
  const observation = await observeVolume(deps, volumeProvider, snapshot);
  if (observation === null) return;
  await applyVolumeObservation(deps, volumeProvider, snapshot, observation);
  await giveUpResize(deps, record.id);
  const synced = await readVolumeSnapshot(deps.store.read, record.id);
  if (synced !== null) await syncAttachments(deps, volumeProvider, synced, observation.volume);
}

/** A volume in `error` is synced only while one of its attachments is in transit. */
function isSettled({ record, attachments }: VolumeSnapshot): boolean {
  return record.status === 'error' && !attachments.some(isInTransit);
}

/** Waits for the instance of a deployment that is still deploying: before that the provider can show nothing. */
function isWaitingForLaunch({ attachments }: VolumeSnapshot): boolean {
  const open = attachments.filter(isInTransit);
  return (
    open.length > 0 &&
    open.every(({ deployment, state }) => state === 'attaching' && deployment.status === 'deploying')
  );
}

/**
 * The volume as its provider shows it. Null on a 404: the record is kept, since O: has no list that could confirm the
 * loss, and an operator is alerted once.
 *
 * @throws {ProviderError}
 */
export async function observeVolume(
  deps: Pick<VolumeDeps, 'log' | 'options'>,
  volumeProvider: VolumeProvider,
  snapshot: VolumeSnapshot,
): Promise<VolumeObservation | null> {
  const { providerVolumeId, volumeId } = snapshot.record;
  if (providerVolumeId === null) return null;
  try {
    const volume = await volumeProvider.provider.client.getVolume(providerVolumeId, {
      timeoutMs: deps.options.polling.callTimeoutMs,
    });
    unknown.get(volumeProvider.provider)?.delete(volumeId);
    return { volume, busy: await findBusy(deps, volumeProvider, snapshot) };
  } catch (error) {
    if (!(error instanceof ProviderError) || error.problem !== 'not_found') throw error;
    tellOnce(deps, volumeProvider, snapshot.record);
    return null;
  }
}

/** The volumes that a provider answered 404 for and that were logged already. */
const unknown = new WeakMap<Provider, Set<string>>();

function tellOnce(
  { log }: Pick<VolumeDeps, 'log'>,
  { provider }: VolumeProvider,
  record: VolumeRecord,
): void {
  const told = unknown.get(provider) ?? new Set();
  unknown.set(provider, told);
  const { volumeId, providerId, providerVolumeId } = record;
  if (told.has(volumeId)) return;
  told.add(volumeId);
  const fields = { ...logNames(record), provider: providerId, providerVolumeId };
  log.error(
    fields,
    'the provider answers 404 for one of our volumes: it is kept and billed here; check it at the provider',
  );
}

/** The deployments whose instances are restarted for the volume (M: Volume rules, 7) and are not back yet. */
async function findBusy(
  { options }: Pick<VolumeDeps, 'options'>,
  { provider, profile }: VolumeProvider,
  { attachments }: VolumeSnapshot,
): Promise<ReadonlySet<string>> {
  const busy = new Set<string>();
  if (!profile.attach.supported || !profile.attach.restarts_instance) return busy;
  for (const { deployment } of attachments.filter(isInTransit)) {
    const { id, providerInstanceId, region, status } = deployment;
    if (status !== 'running' || providerInstanceId === null) continue;
    const timeoutMs = options.polling.callTimeoutMs;
    if (!(await isOnline(provider, providerInstanceId, region, timeoutMs))) busy.add(id);
  }
  return busy;
}

async function isOnline(
  { client }: Provider,
  instanceId: string,
  region: string,
  timeoutMs: number,
): Promise<boolean> {
  try {
    return (await client.getInstance(instanceId, region, { timeoutMs })).status === 'ONLINE';
  } catch (error) {
    if (error instanceof ProviderError) return false;
    throw error;
  }
}

/** Gives up a resize that the provider has not shown within `actionMs`. */
async function giveUpResize({ store, clock, options }: VolumeDeps, id: string): Promise<void> {
  const current = await store.read.volumes.byId(id);
  const isOver = (action: VolumeAction) =>
    action.kind === 'resize' && hasTimedOut(action, clock.now(), options);
  if (current === null || current.action === null || !isOver(current.action)) return;
  await transactOnVolume(store, id, async (tx, snapshot) => {
    if (snapshot.record.action !== null && isOver(snapshot.record.action))
      await endResize(tx, snapshot, clock.now());
  });
}

/** Syncs the volume again and again until `isDone` or the deadline. A provider error counts as no answer yet. */
export async function syncUntil(
  deps: VolumeDeps,
  volumeProvider: VolumeProvider,
  id: string,
  deadline: number,
  isDone: (snapshot: VolumeSnapshot) => boolean,
): Promise<VolumeSnapshot> {
  for (;;) {
    await trySyncVolume(deps, volumeProvider, id);
    const snapshot = await readVolumeSnapshot(deps.store.read, id);
    if (snapshot === null) throw new Error(`the volume ${id} is not there any more`);
    const left = deadline - deps.clock.now();
    if (isDone(snapshot) || left <= 0) return snapshot;
    await pass(deps.clock, Math.min(POLL_EVERY_MS, left));
  }
}

/** Syncs the volume once; a provider error is logged and leaves the record as it is. */
export async function trySyncVolume(
  deps: VolumeDeps,
  volumeProvider: VolumeProvider,
  id: string,
): Promise<void> {
  const snapshot = await readVolumeSnapshot(deps.store.read, id);
  if (snapshot === null) return;
  try {
    await syncVolume(deps, volumeProvider, snapshot);
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    const { problem, message } = error;
    const names = { ...logNames(snapshot.record), provider: volumeProvider.provider.id };
    deps.log.debug({ ...names, problem, message }, 'a volume could not be read at its provider');
  }
}

export function pass(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.setTimer(ms, resolve));
}
