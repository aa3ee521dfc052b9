import { orProviderError, ProviderError } from '../../../client/orchestrator-client.ts';
import type { Volume as ProviderVolume } from '../../../contract/volume.ts';
import { isActive } from '../../model/deployment-record.ts';
import { isUnsent } from '../../model/intent.ts';
import type { Transaction } from '../../model/store.ts';
import { logNames, type VolumeRecord } from '../../model/volume-record.ts';
import { admitLoss, logLossAlarm } from '../../providers/loss-cap.ts';
import { acceptDeletion, isBeingDeleted, stillAttached } from '../../volumes/delete.ts';
import { dropAttachments } from '../../volumes/settle.ts';
import {
  readVolumeSnapshot,
  transactOnVolume,
  type VolumeSnapshot,
  writeVolume,
} from '../../volumes/snapshot.ts';
import { applyVolumeObservation } from './apply-observation.ts';
import { volumeHolderOf } from './creation.ts';
import {
  ABOUT_THIS_CALL,
  beginAttempt,
  getVolume,
  refuse,
  type Sent,
  settleError,
  toApiError,
  type VolumeContext,
} from './step.ts';

/**
 * Sends the deletion, unless the provider shows the volume on an active deployment.
 * @throws {ProviderError} if nothing was sent
 */
export async function startDeletion(context: VolumeContext, snapshot: VolumeSnapshot): Promise<void> {
  const { record } = snapshot;
  const { action, providerVolumeId } = record;
  if (action === null || providerVolumeId === null) return;
  // A process has sent the deletion without writing the answer.
  if (!isUnsent(action)) return accept(context, record);
  if ((await volumeHolderOf(context.store.read, record, providerVolumeId)) !== null) {
    // Nothing is sent, so that the other volume keeps its data.
    if ((await beginAttempt(context, snapshot)) !== null) await accept(context, record);
    return;
  }
  const asked: Sent = { ...snapshot, record: { ...record, action } };
  const begunAt = context.clock.now();
  const shown = await getShown(context, asked, providerVolumeId);
  if (shown === 'refused') return;
  const holders = shown === null ? [] : await activeHolders(context, shown);
  if (shown !== null && holders.length > 0) {
    await refuse(context, asked, stillAttached(holders));
    const snapshot = await readVolumeSnapshot(context.store.read, record.id);
    return snapshot === null
      ? undefined
      : applyVolumeObservation(context, { snapshot, volume: shown }, begunAt);
  }
  const sent = await beginAttempt(context, snapshot);
  if (sent === null) return;
  const answer = await orProviderError(sendDeletion(context, providerVolumeId));
  if (!(answer instanceof ProviderError)) await accept(context, record, answer);
  else if (!(await settleError(context, sent, answer))) await accept(context, record);
}

/** The volume at the provider; null: 404. */
async function getShown(
  context: VolumeContext,
  asked: Sent,
  providerVolumeId: string,
): Promise<ProviderVolume | 'refused' | null> {
  const volume = await orProviderError(getVolume(context, providerVolumeId));
  if (!(volume instanceof ProviderError)) return volume;
  if (!ABOUT_THIS_CALL.includes(volume.problem)) throw volume;
  await refuse(context, asked, toApiError(asked, volume));
  return 'refused';
}

/** The active deployments that have the volume according to the provider. */
async function activeHolders(
  { store, provider }: VolumeContext,
  { attached_instance_ids: instanceIds = [] }: ProviderVolume,
): Promise<string[]> {
  const found = await Promise.all(
    instanceIds.map((id) => store.read.deployments.byInstance(provider.id, id)),
  );
  return found.flat().flatMap((deployment) => (isActive(deployment) ? [deployment.id] : []));
}

async function accept(context: VolumeContext, { id }: VolumeRecord, isTaken = false): Promise<void> {
  await transactOnVolume(context.store, id, (tx, { record }) => acceptDeletion(context, tx, record, isTaken));
}

/**
 * Repeats an accepted deletion until a 404 proves that the volume is gone. Its billing has ended already.
 * @throws {ProviderError}
 */
export async function proveDeletion(context: VolumeContext, record: VolumeRecord): Promise<void> {
  const { providerVolumeId } = record;
  if (providerVolumeId === null) return endDeletion(context, record);
  const { provider, call, store } = context;
  if ((await volumeHolderOf(store.read, record, providerVolumeId)) !== null)
    return endShared(context, record, providerVolumeId);
  const { client } = provider;
  try {
    const volume = await client.getVolume(providerVolumeId, call);
    const isTaken = volume.status === 'DELETING' || (await sendDeletion(context, providerVolumeId, volume));
    if (isTaken && record.deletionTakenAt === null) await accept(context, record, true);
    if (volume.status !== 'DELETING') await client.getVolume(providerVolumeId, call);
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    if (error.problem === 'not_found') return endDeletion(context, record);
    await alarm(context, record, `${error.problem}: ${error.message}`);
    throw error;
  }
  await alarm(context, record, 'the provider still has it');
}

/**
 * If the provider refuses because attachments are left, detaches them and tries again (O: "force-detaches … instead of
 * failing"). Returns whether the provider accepted the deletion.
 * @throws {ProviderError}
 */
async function sendDeletion(
  context: VolumeContext,
  providerVolumeId: string,
  known?: ProviderVolume,
): Promise<boolean> {
  const { provider, call } = context;
  const answer = await tryDeletion(context, providerVolumeId);
  if (!(answer instanceof ProviderError)) return answer;
  const shown = known ?? (await provider.client.getVolume(providerVolumeId, call));
  const { attached_instance_ids: left = [] } = shown;
  if (left.length === 0) throw answer;
  // The volume was attached after it was read for this deletion.
  if (known === undefined && (await activeHolders(context, shown)).length > 0) throw answer;
  await provider.client.detachVolume(providerVolumeId, left, call);
  return (await tryDeletion(context, providerVolumeId)) === true;
}

/** Returns whether the provider accepted the deletion, or a conflict. @throws {ProviderError} any other error */
async function tryDeletion(
  { provider, call }: VolumeContext,
  providerVolumeId: string,
): Promise<boolean | ProviderError> {
  const answer = await orProviderError(provider.client.deleteVolume(providerVolumeId, call));
  if (answer instanceof ProviderError && answer.problem !== 'conflict') throw answer;
  return answer;
}

/** Ends a deletion after a 404. A missing volume whose deletion the provider never accepted counts as a loss. */
async function endDeletion(context: VolumeContext, { id, providerId }: VolumeRecord): Promise<void> {
  const admission = await transactOnVolume(
    context.store,
    id,
    async (tx, { record, attachments }) => {
      if (!isBeingDeleted(record)) return null;
      const isNotFound = record.providerVolumeId !== null && record.deletionTakenAt === null;
      const admission = isNotFound
        ? await admitLoss(context, tx, { subjectId: id, kind: 'volume', providerId })
        : null;
      if (admission?.isAdmitted === false) return admission;
      await writeDeleted(tx, { record, attachments });
      return null;
    },
    (tx) => tx.losses.lock(providerId),
  );
  if (admission !== null && admission.alarm !== null) logLossAlarm(context.log, admission.alarm);
}

/**
 * Ends the deletion of a volume that another row has; the provider keeps the volume. If both rows are deleted at once,
 * the second sees the end of the first.
 */
async function endShared(
  { store, log }: VolumeContext,
  { id, providerId }: VolumeRecord,
  providerVolumeId: string,
): Promise<void> {
  const ended = await transactOnVolume(
    store,
    id,
    async (tx, snapshot) => {
      const { record } = snapshot;
      const holder = isBeingDeleted(record) ? await volumeHolderOf(tx, record, providerVolumeId) : null;
      if (holder === null) return null;
      await writeDeleted(tx, snapshot);
      return { record, holder };
    },
    (tx) => tx.losses.lock(providerId),
  );
  if (ended === null) return;
  log.error(
    { ...logNames(ended.record), provider: providerId, providerVolumeId, holder: ended.holder.volumeId },
    'not deleting a volume that belongs to another record: ask the provider why both have its id',
  );
}

async function writeDeleted(tx: Transaction, { record, attachments }: VolumeSnapshot): Promise<void> {
  await writeVolume(tx, record, { status: 'deleted', cleanup: 'done', action: null });
  await tx.losses.release(record.id);
  await dropAttachments(tx, record, attachments);
}

/** A deletion is never given up. While the proof is missing, an error is logged at most once per `actionMs`. */
async function alarm(
  { store, clock, options, log }: VolumeContext,
  volume: VolumeRecord,
  reason: string,
): Promise<void> {
  const now = clock.now();
  const since = Math.max(volume.observedAt ?? 0, volume.deletedAt ?? 0);
  if (now - since < options.polling.actionMs) return;
  const { providerId, providerVolumeId } = volume;
  log.error(
    { ...logNames(volume), provider: providerId, providerVolumeId, reason },
    'a deleted volume may still exist at the provider and cost money: its deletion is retried until the provider confirms it',
  );
  await store.transact(async (tx) => {
    const record = await tx.volumes.byId(volume.id);
    if (record !== null && isBeingDeleted(record)) await writeVolume(tx, record, { observedAt: now });
  });
}
