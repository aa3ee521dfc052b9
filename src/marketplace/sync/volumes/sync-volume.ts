import { orProviderError, ProviderError } from '../../../client/orchestrator-client.ts';
import { isExpired, isUnsent } from '../../model/intent.ts';
import { logNames } from '../../model/volume-record.ts';
import { notReached } from '../../providers/intended-call.ts';
import { toVolumeProvider } from '../../providers/volume-provider.ts';
import { isBeingDeleted } from '../../volumes/delete.ts';
import { toCall } from '../../volumes/settle.ts';
import { isInTransit, readVolumeSnapshot, type VolumeSnapshot } from '../../volumes/snapshot.ts';
import type { SyncContext } from '../context.ts';
import { applyVolumeObservation, credibleGb } from './apply-observation.ts';
import { findAttachment, sendAttachment, syncAttachments } from './attachments.ts';
import { syncCreation } from './creation.ts';
import { proveDeletion, startDeletion } from './deletion.ts';
import { endBillOfFailed, getKnownVolume } from './observe.ts';
import { beginAttempt, refuse, type Shown, settleError, type VolumeContext } from './step.ts';

/** Pauses between two syncs of a volume: while a request waits, while it changes, while it is broken, and at rest. */
const AWAITED_MS = 1_500;
export const CHANGING_MS = 5_000;
const FAILED_MS = 60_000;
export const SETTLED_MS = 15 * 60_000;

/** Runs the next step. Returns the pause until the following one in milliseconds; null: nothing is left to do. */
export async function syncVolume(sync: SyncContext, id: string): Promise<number | null> {
  const volumeProvider = toVolumeProvider(sync.provider);
  const snapshot = await readVolumeSnapshot(sync.store.read, id);
  if (volumeProvider === null || snapshot === null) return null;
  const context: VolumeContext = { ...sync, volumeProvider };
  const error = await orProviderError(step(context, snapshot));
  if (error instanceof ProviderError) {
    const { problem, message } = error;
    const fields = { ...logNames(snapshot.record), provider: volumeProvider.provider.id, problem, message };
    context.log.debug(fields, 'a call about a volume failed');
  }
  const after = await readVolumeSnapshot(sync.store.read, id);
  if (after === null) return null;
  // A new volume is read at once.
  const isMade = snapshot.record.providerVolumeId === null && after.record.providerVolumeId !== null;
  return isMade ? 0 : pauseMs(context, after);
}

function pauseMs({ clock, options, random }: VolumeContext, snapshot: VolumeSnapshot): number | null {
  const { record } = snapshot;
  const { action, status, startedAt, deletedAt } = record;
  if (status === 'deleted' && !isBeingDeleted(record)) return null;
  if (action !== null || isBeingDeleted(record)) {
    const isAwaited = action !== null && clock.now() - action.since < options.lifecycleWaitMs;
    return isAwaited ? AWAITED_MS : CHANGING_MS;
  }
  if (status === 'error') return startedAt !== null && deletedAt === null ? FAILED_MS : null;
  return Math.round(SETTLED_MS * (0.75 + random.next() / 2));
}

/** @throws {ProviderError} */
async function step(context: VolumeContext, snapshot: VolumeSnapshot): Promise<void> {
  const { record } = snapshot;
  const { action } = record;
  if (isBeingDeleted(record)) return proveDeletion(context, record);
  if (record.status === 'deleted') return;
  // The request is over, or its process has ended. The intent is withdrawn, unless an earlier call was sent.
  if (action !== null && isExpired(action, context.clock.now())) {
    const unsent = { ...snapshot, record: { ...record, action } };
    if (await refuse(context, unsent, notReached(toCall(unsent.record)))) return;
  }
  if (action?.kind === 'delete') return startDeletion(context, snapshot);
  if (isWaitingForLaunch(snapshot)) return;
  if (record.status === 'error' && !snapshot.attachments.some(isInTransit))
    return endBillOfFailed(context, record);
  if (record.providerVolumeId === null) return syncCreation(context, snapshot);
  const begunAt = context.clock.now();
  const observed = (await sendUnsent(context, snapshot)) ?? (await read(context, snapshot));
  if (observed === null) return;
  await applyVolumeObservation(context, observed, begunAt);
  const synced = await readVolumeSnapshot(context.store.read, record.id);
  if (synced !== null) await syncAttachments(context, synced, observed.volume);
}

async function read(context: VolumeContext, snapshot: VolumeSnapshot): Promise<Shown | null> {
  const volume = await getKnownVolume(context, snapshot.record);
  return volume === null ? null : { snapshot, volume };
}

/** Sends the intent of a waiting request now. Returns the volume in the answer, or null without an answer. */
async function sendUnsent(context: VolumeContext, snapshot: VolumeSnapshot): Promise<Shown | null> {
  const { action } = snapshot.record;
  if (action === null || !isUnsent(action)) return null;
  if (action.kind === 'resize') return sendResize(context, snapshot);
  const attachment = findAttachment(snapshot, action);
  return attachment === undefined ? null : sendAttachment(context, snapshot, attachment);
}

/** Whether all attachments wait for a deploying instance. Until it exists, the provider has nothing to show. */
function isWaitingForLaunch({ attachments }: VolumeSnapshot): boolean {
  const open = attachments.filter(isInTransit);
  return (
    open.length > 0 &&
    open.every(({ deployment, state }) => state === 'attaching' && deployment.status === 'deploying')
  );
}

/**
 * Sends a resize once, unless the provider shows that size already. Returns the volume as the provider then shows it.
 * @throws {ProviderError}
 */
async function sendResize(context: VolumeContext, snapshot: VolumeSnapshot): Promise<Shown | null> {
  const { providerVolumeId, providerSizeGb, action } = snapshot.record;
  const toSizeGb = action?.toSizeGb ?? 0;
  if (credibleGb(context, snapshot.record, providerSizeGb ?? 0) >= toSizeGb) return null;
  const sent = await beginAttempt(context, snapshot);
  if (sent === null || providerVolumeId === null) return null;
  const { client } = context.provider;
  const resizing = client.resizeVolume(providerVolumeId, toSizeGb, context.call);
  const volume = await orProviderError(resizing);
  if (!(volume instanceof ProviderError)) return { snapshot: sent, volume, isAccepted: true };
  await settleError(context, sent, volume);
  return null;
}
