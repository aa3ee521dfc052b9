import { orProviderError, ProviderError } from '../../../client/orchestrator-client.ts';
import type { Volume as ProviderVolume } from '../../../contract/volume.ts';
import { isActive } from '../../model/deployment-record.ts';
import { isUnsent } from '../../model/intent.ts';
import { logNames, type VolumeRecord } from '../../model/volume-record.ts';
import { refusedError } from '../../providers/intended-call.ts';
import { admitLoss, logLossAlarm } from '../../providers/loss-cap.ts';
import { acceptDeletion, isBeingDeleted, stillAttached } from '../../volumes/delete.ts';
import { toCall, writeAttachment } from '../../volumes/intents.ts';
import { readVolumeSnapshot, transactOnVolume, writeVolume } from '../../volumes/snapshot.ts';
import { applyVolumeObservation } from './apply-observation.ts';
import { volumeHolderOf } from './creation.ts';
import {
  ABOUT_THIS_CALL,
  beginAttempt,
  getVolume,
  type Pending,
  refuse,
  settleError,
  type VolumeContext,
} from './step.ts';

/**
 * Sends the deletion, unless the provider shows the volume on an active deployment.
 * @throws {ProviderError} if nothing was sent
 */
export async function startDeletion(context: VolumeContext, asked: Pending): Promise<void> {
  const { record, intent } = asked;
  const { providerVolumeId } = record;
  if (providerVolumeId === null) return;
  // A process has sent the deletion without writing the answer.
  if (!isUnsent(intent)) return accept(context, record);
  // Nothing is sent for a volume that another row has, so that this one keeps its data.
  const isShared = (await volumeHolderOf(context.store.read, record, providerVolumeId)) !== null;
  if (!isShared && !(await isFree(context, asked, providerVolumeId))) return;
  const sent = await beginAttempt(context, asked);
  if (sent === null) return;
  const answer = isShared ? false : await orProviderError(sendDeletion(context, providerVolumeId));
  if (!(answer instanceof ProviderError)) await accept(context, record, answer);
  else if (!(await settleError(context, sent, answer))) await accept(context, record);
}

/** Reads the volume. Refuses the deletion, and takes the attachment over, if an active deployment has it. */
async function isFree(context: VolumeContext, asked: Pending, providerVolumeId: string): Promise<boolean> {
  const begunAt = context.clock.now();
  const volume = await orProviderError(getVolume(context, providerVolumeId));
  if (volume instanceof ProviderError) {
    if (!ABOUT_THIS_CALL.includes(volume.problem)) throw volume;
    await refuse(context, asked, refusedError(toCall(asked), volume));
    return false;
  }
  const holders = volume === null ? [] : await activeHolders(context, volume);
  if (volume === null || holders.length === 0) return true;
  await refuse(context, asked, stillAttached(holders));
  const snapshot = await readVolumeSnapshot(context.store.read, asked.record.id);
  await applyVolumeObservation(context, { snapshot, volume }, begunAt);
  return false;
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
  const { provider, call, store } = context;
  if (providerVolumeId === null || (await volumeHolderOf(store.read, record, providerVolumeId)) !== null)
    return endDeletion(context, record, { isNotFound: false });
  const { client } = provider;
  try {
    const volume = await client.getVolume(providerVolumeId, call);
    const isTaken = volume.status === 'DELETING' || (await sendDeletion(context, providerVolumeId, volume));
    if (isTaken && record.deletionTakenAt === null) await accept(context, record, true);
    if (volume.status !== 'DELETING') await client.getVolume(providerVolumeId, call);
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    if (error.problem === 'not_found') return endDeletion(context, record, { isNotFound: true });
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
  const { client } = context.provider;
  const answer = await orProviderError(client.deleteVolume(providerVolumeId, context.call));
  if (!(answer instanceof ProviderError)) return answer;
  if (answer.problem !== 'conflict') throw answer;
  const shown = known ?? (await client.getVolume(providerVolumeId, context.call));
  const { attached_instance_ids: left = [] } = shown;
  if (left.length === 0) throw answer;
  // The volume was attached after it was read for this deletion.
  if (known === undefined && (await activeHolders(context, shown)).length > 0) throw answer;
  await client.detachVolume(providerVolumeId, left, context.call);
  const again = await orProviderError(client.deleteVolume(providerVolumeId, context.call));
  if (again instanceof ProviderError && again.problem !== 'conflict') throw again;
  return again === true;
}

/**
 * Ends the deletion of a volume that the provider does not have or never made, or that another row has: then the
 * provider keeps it. If both rows are deleted at once, the second sees the end of the first. A 404 without an accepted
 * deletion counts as a loss.
 */
async function endDeletion(
  context: VolumeContext,
  { id, providerId, providerVolumeId }: VolumeRecord,
  { isNotFound }: { isNotFound: boolean },
): Promise<void> {
  const ended = await transactOnVolume(
    context.store,
    id,
    async (tx, { record, attachments }) => {
      if (!isBeingDeleted(record)) return null;
      const holder = providerVolumeId === null ? null : await volumeHolderOf(tx, record, providerVolumeId);
      if (holder === null && providerVolumeId !== null && !isNotFound) return null;
      if (isNotFound && record.deletionTakenAt === null) {
        const loss = await admitLoss(context, tx, { subjectId: id, kind: 'volume', providerId });
        if (!loss.isAdmitted) return { alarm: loss.alarm };
      }
      await writeVolume(tx, record, { status: 'deleted', cleanup: 'done', action: null });
      await tx.losses.release(id);
      for (const { deployment } of attachments) await writeAttachment(tx, record, deployment, 'gone');
      return { names: logNames(record), holder };
    },
    (tx) => tx.losses.lock(providerId),
  );
  if (ended?.alarm) logLossAlarm(context.log, ended.alarm);
  if (ended?.holder)
    context.log.error(
      { ...ended.names, provider: providerId, providerVolumeId, holder: ended.holder.volumeId },
      'not deleting a volume that belongs to another record: ask the provider why both have its id',
    );
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
  log.error(
    { ...logNames(volume), providerVolumeId: volume.providerVolumeId, reason },
    'a deleted volume may still exist at the provider and cost money: its deletion is retried until the provider confirms it',
  );
  await store.transact(async (tx) => {
    const record = await tx.volumes.byId(volume.id);
    if (record !== null && isBeingDeleted(record)) await writeVolume(tx, record, { observedAt: now });
  });
}
