import { orProviderError, ProviderError } from '../../../client/orchestrator-client.ts';
import { endBilling } from '../../ledger/segments.ts';
import { isExpired, isUnsent } from '../../model/intent.ts';
import { logNames, type VolumeRecord } from '../../model/volume-record.ts';
import { notReached } from '../../providers/intended-call.ts';
import { isNotFoundTrusted } from '../../providers/loss-cap.ts';
import type { Provider } from '../../providers/provider.ts';
import { toVolumeProvider } from '../../providers/volume-provider.ts';
import { isBeingDeleted } from '../../volumes/delete.ts';
import { toCall } from '../../volumes/intents.ts';
import {
  isInTransit,
  readVolumeSnapshot,
  transactOnVolume,
  type VolumeSnapshot,
  writeVolume,
} from '../../volumes/snapshot.ts';
import type { SyncContext } from '../context.ts';
import { applyVolumeObservation, credibleGb } from './apply-observation.ts';
import { sendAttachment, syncAttachments } from './attachments.ts';
import { syncCreation } from './creation.ts';
import { proveDeletion, startDeletion } from './deletion.ts';
import { getVolume, type Pending, refuse, type Shown, send, type VolumeContext } from './step.ts';

/** Pauses between two syncs of a volume: while a request waits, while it changes, while it is broken, and at rest. */
const AWAITED_MS = 1_500;
export const CHANGING_MS = 5_000;
const FAILED_MS = 60_000;
export const SETTLED_MS = 15 * 60_000;

/** Runs the next step. Returns the pause until the following one in milliseconds; null: nothing is left to do. */
export async function syncVolume(sync: SyncContext, id: string): Promise<number | null> {
  const volumeProvider = toVolumeProvider(sync.provider);
  const snapshot = await readVolumeSnapshot(sync.store.read, id);
  if (volumeProvider === null) return null;
  const context: VolumeContext = { ...sync, volumeProvider };
  const error = await orProviderError(step(context, snapshot));
  if (error instanceof ProviderError) {
    const { problem, message } = error;
    const fields = { ...logNames(snapshot.record), problem, message };
    context.log.debug(fields, 'a call about a volume failed');
  }
  const after = await readVolumeSnapshot(sync.store.read, id);
  // A new volume is read at once.
  const isMade = snapshot.record.providerVolumeId === null && after.record.providerVolumeId !== null;
  return isMade ? 0 : pauseMs(context, after);
}

/** What is wanted of the volume and not observed yet. */
function pendingOf(snapshot: VolumeSnapshot): Pending[] {
  const { record, attachments } = snapshot;
  const intents = [record.action, ...attachments.map(({ intent }) => intent)];
  return intents.flatMap((intent) => (intent === null ? [] : [{ ...snapshot, intent }]));
}

function pauseMs({ clock, options, random }: VolumeContext, snapshot: VolumeSnapshot): number | null {
  const { record } = snapshot;
  const { status, startedAt, deletedAt } = record;
  if (status === 'deleted' && !isBeingDeleted(record)) return null;
  const pending = pendingOf(snapshot);
  if (pending.some(({ intent }) => clock.now() - intent.since < options.lifecycleWaitMs)) return AWAITED_MS;
  if (pending.length > 0 || status === 'creating' || isBeingDeleted(record)) return CHANGING_MS;
  if (status === 'error') return startedAt !== null && deletedAt === null ? FAILED_MS : null;
  return Math.round(SETTLED_MS * (0.75 + random.next() / 2));
}

/** @throws {ProviderError} */
async function step(context: VolumeContext, snapshot: VolumeSnapshot): Promise<void> {
  const { record, attachments } = snapshot;
  if (isBeingDeleted(record)) return proveDeletion(context, record);
  if (record.status === 'deleted') return;
  const pending = pendingOf(snapshot);
  // The request is over, or its process has ended.
  const expired = pending.find(({ intent }) => isExpired(intent, context.clock.now()));
  if (expired !== undefined && (await refuse(context, expired, notReached(toCall(expired))))) return;
  if (record.action?.kind === 'delete') return startDeletion(context, { ...snapshot, intent: record.action });
  if (isWaitingForLaunch(snapshot)) return;
  if (record.status === 'error' && !attachments.some(isInTransit)) return endBillOfFailed(context, record);
  if (record.providerVolumeId === null) return syncCreation(context, snapshot);
  const begunAt = context.clock.now();
  const shown = (await sendAsked(context, pending)) ?? (await getKnownVolume(context, snapshot));
  if (shown === null) return record.status === 'error' ? endBillOfFailed(context, record) : undefined;
  await applyVolumeObservation(context, shown, begunAt);
  await syncAttachments(context, await readVolumeSnapshot(context.store.read, record.id), shown.volume);
}

/** Sends the intent of a waiting request now. Returns the volume in the answer, or null without an answer. */
async function sendAsked(context: VolumeContext, pending: readonly Pending[]): Promise<Shown | null> {
  const asked = pending.find(({ intent }) => isUnsent(intent) && intent.until !== null);
  if (asked === undefined) return null;
  if (asked.intent.kind === 'resize') return sendResize(context, asked);
  const attachment = asked.attachments.find((it) => it.deploymentId === asked.intent.deploymentId);
  return attachment === undefined ? null : sendAttachment(context, asked, attachment.deployment);
}

/** Whether all that is wanted waits for a deploying instance. Until it exists, the provider has nothing to show. */
function isWaitingForLaunch({ record, attachments }: VolumeSnapshot): boolean {
  const open = attachments.filter(isInTransit);
  return (
    record.action === null &&
    open.length > 0 &&
    open.every(({ deployment, state }) => state === 'attaching' && deployment.status === 'deploying')
  );
}

/**
 * Sends a resize once, unless the provider shows that size already. Returns the volume as the provider then shows it.
 * @throws {ProviderError}
 */
async function sendResize(context: VolumeContext, pending: Pending): Promise<Shown | null> {
  const { providerVolumeId, providerSizeGb } = pending.record;
  const { toSizeGb = 0 } = pending.intent;
  const isShown = credibleGb(context, pending.record, providerSizeGb ?? 0) >= toSizeGb;
  if (isShown || providerVolumeId === null) return null;
  const { provider, call } = context;
  return send(context, pending, () => provider.client.resizeVolume(providerVolumeId, toSizeGb, call));
}

/**
 * Reads the volume from its provider. A 404 is logged once and gives null. The record is then kept, since O: has no
 * list to confirm the loss.
 * @throws {ProviderError}
 */
async function getKnownVolume(context: VolumeContext, snapshot: VolumeSnapshot): Promise<Shown | null> {
  const { provider, log } = context;
  const { record } = snapshot;
  const { volumeId, providerVolumeId } = record;
  if (providerVolumeId === null) return null;
  const volume = await getVolume(context, providerVolumeId);
  if (volume !== null) {
    unknown.get(provider)?.delete(volumeId);
    return { snapshot, volume };
  }
  const logged = unknown.get(provider) ?? new Set();
  unknown.set(provider, logged);
  if (!logged.has(volumeId))
    log.error(
      { ...logNames(record), providerVolumeId },
      'the provider answers 404 for a volume of this marketplace: it is kept and billed; check it at the provider',
    );
  logged.add(volumeId);
  return null;
}

/** The volumes for which a provider's 404 was already logged. */
const unknown = new WeakMap<Provider, Set<string>>();

/**
 * Ends the bill of a volume in `error` once the provider answers 404. The volume keeps its status until its user
 * deletes it.
 * @throws {ProviderError}
 */
async function endBillOfFailed(context: VolumeContext, record: VolumeRecord): Promise<void> {
  const { id, startedAt, deletedAt, providerId, providerVolumeId } = record;
  if (startedAt === null || deletedAt !== null) return;
  if (providerVolumeId !== null && (await getVolume(context, providerVolumeId)) !== null) return;
  // A provider that answers 404 for everything does so for existing volumes too.
  if (providerVolumeId !== null && !(await isNotFoundTrusted(context, providerId))) return;
  await transactOnVolume(context.store, id, async (tx, { record: current }) => {
    if (current.status !== 'error' || current.deletedAt !== null) return;
    const endedAt = await endBilling(context, tx, 'volume', id, context.clock.now());
    await writeVolume(tx, current, { deletedAt: endedAt });
  });
  context.log.info(logNames(record), 'the provider no longer has a broken volume: its billing has ended');
}
