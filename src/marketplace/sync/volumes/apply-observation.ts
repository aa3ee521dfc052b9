import { isDeepStrictEqual } from 'node:util';
import { orProviderError, ProviderError } from '../../../client/orchestrator-client.ts';
import type { Volume as ProviderVolume } from '../../../contract/volume.ts';
import { endBilling, startBilling } from '../../ledger/segments.ts';
import { isActive } from '../../model/deployment-record.ts';
import { hasTimedOut } from '../../model/intent.ts';
import type { Transaction } from '../../model/store.ts';
import { logNames, toAttachment, type VolumeIntent, type VolumeRecord } from '../../model/volume-record.ts';
import { detachIntent, writeAttachment } from '../../volumes/intents.ts';
import { sizeLimits } from '../../volumes/limits.ts';
import { newPrice } from '../../volumes/locations.ts';
import {
  type AttachmentSnapshot,
  isAttachedAtProvider,
  isInTransit,
  lockSnapshot,
  type VolumeSnapshot,
  writeVolume,
} from '../../volumes/snapshot.ts';
import type { Shown, VolumeContext } from './step.ts';

/**
 * Applies what the provider showed at `begunAt`, even if no request caused it, unless the volume has changed since the
 * snapshot.
 */
export async function applyVolumeObservation(
  context: VolumeContext,
  { snapshot, volume }: Shown,
  begunAt: number,
): Promise<void> {
  const busy = await findBusy(context, snapshot);
  const found = await unknownHolders(context, snapshot, volume);
  const now = context.clock.now();
  const providerSizeGb = await context.store.transact(async (tx) => {
    const attachments = [...snapshot.attachments, ...found];
    const locked = await lockSnapshot(tx, { ...snapshot, attachments });
    if (locked === null || !acceptsObservation(locked)) return null;
    const { record } = locked;
    const seen = locked.attachments.map((before) => ({
      before,
      isNew: found.some(({ deploymentId }) => deploymentId === before.deploymentId),
      after: busy.has(before.deploymentId) ? before.intent : intentAfter(record, before, volume, now),
    }));
    const changes = seen.filter(({ before, isNew, after }) => isNew || after !== before.intent);
    const isLeft = seen.some(({ after }) => after !== 'gone');
    const has = (end: null | 'gone') => changes.some(({ after }) => after === end);
    const observed: VolumeRecord = {
      ...record,
      ...volumeAfter(context, record, volume, isLeft, now),
      lastAttachedAt: has(null) ? now : record.lastAttachedAt,
      lastDetachedAt: has('gone') ? now : record.lastDetachedAt,
    };
    if (changes.length === 0 && isDeepStrictEqual(observed, record)) {
      await tx.volumes.recordObservation(record.id, begunAt);
      return null;
    }
    const isResized = observed.sizeGb !== record.sizeGb;
    const after = isResized ? await withPrice(context, tx, observed, now) : observed;
    await writeVolume(tx, record, { ...after, observedAt: begunAt });
    for (const { before, after } of changes) await writeAttachment(tx, record, before.deployment, after);
    const subject = { subjectKind: 'volume', subjectId: record.id, teamId: record.teamId } as const;
    if (isResized || after.startedAt !== record.startedAt)
      await startBilling(context, tx, { ...subject, state: 'stored', at: now, price: after });
    return after.providerSizeGb === record.providerSizeGb ? null : after.providerSizeGb;
  });
  if (providerSizeGb !== null)
    context.log.warn(
      { ...logNames(snapshot.record), providerSizeGb },
      'the provider shows another size of a volume than was asked for: its user sees and pays the size that was asked for; ask the provider why',
    );
}

/** The deployments whose instances are being restarted for the volume (M: Volume rules, 7). */
async function findBusy(
  { provider, volumeProvider: { profile }, call }: VolumeContext,
  { attachments }: VolumeSnapshot,
): Promise<ReadonlySet<string>> {
  const busy = new Set<string>();
  if (profile.no_attach !== undefined || !profile.attach_restarts_instance) return busy;
  for (const { deployment } of attachments.filter(isInTransit)) {
    const { id, providerInstanceId, region, status } = deployment;
    if (status !== 'running' || providerInstanceId === null) continue;
    const shown = await orProviderError(provider.client.getInstance(providerInstanceId, region, call));
    if (shown instanceof ProviderError || shown.status !== 'ONLINE') busy.add(id);
  }
  return busy;
}

/** Deployments that have the volume at the provider, although no attachment is stored: a call took effect late. */
async function unknownHolders(
  { store, provider }: VolumeContext,
  { record, attachments }: VolumeSnapshot,
  { attached_instance_ids: instanceIds = [], status }: ProviderVolume,
): Promise<AttachmentSnapshot[]> {
  if (status !== 'ATTACHED' && status !== 'AVAILABLE') return [];
  const known = new Set(attachments.map(({ deployment }) => deployment.providerInstanceId));
  const unknown = instanceIds.filter((id) => !known.has(id));
  const found = await Promise.all(unknown.map((id) => store.read.deployments.byInstance(provider.id, id)));
  return found.flatMap((holders) => {
    const own = holders.filter(({ teamId }) => teamId === record.teamId);
    const deployment = own.find(isActive) ?? own[0];
    return deployment === undefined ? [] : [{ ...toAttachment(record, deployment.id, null), deployment }];
  });
}

/** A volume in `error` keeps that status, but its attachments are settled. Deletions are handled elsewhere. */
function acceptsObservation({ record: { status, action }, attachments }: VolumeSnapshot): boolean {
  if (action?.kind === 'delete') return false;
  if (status === 'error') return attachments.some(isInTransit);
  return status === 'creating' || status === 'available' || status === 'attached';
}

/** What is still wanted of an attachment; `gone`: the provider does not have it. */
function intentAfter(
  record: VolumeRecord,
  { intent, deployment }: AttachmentSnapshot,
  volume: ProviderVolume,
  now: number,
): VolumeIntent | null | 'gone' {
  const isThere = isAttachedAtProvider(volume, deployment);
  if (intent?.kind === 'detach') return isThere ? intent : 'gone';
  if (intent !== null) return isThere && volume.status !== 'ATTACHING' ? null : intent;
  if (isThere) return isActive(deployment) ? null : detachIntent(record, deployment.id, now);
  // A volume that is AVAILABLE, or ATTACHED elsewhere, is not on this instance.
  return volume.status === 'AVAILABLE' || volume.status === 'ATTACHED' ? 'gone' : null;
}

/** What the provider shows of a volume, before the price of a new size. */
function volumeAfter(
  context: VolumeContext,
  record: VolumeRecord,
  { status, size_gb: observedGb }: ProviderVolume,
  isLeft: boolean,
  now: number,
): Partial<VolumeRecord> {
  if (record.status === 'creating' && status === 'CREATING') return {};
  if (status === 'ERROR' || record.status === 'error') return { status: 'error', action: null };
  return {
    ...sizesAfter(context, record, observedGb, now),
    status: isLeft ? 'attached' : 'available',
    startedAt: record.startedAt ?? now,
  };
}

/** Prices a new size from the end of what is billed on, which is later than `now` if a server with a fast clock billed. */
async function withPrice(
  context: VolumeContext,
  tx: Transaction,
  record: VolumeRecord,
  now: number,
): Promise<VolumeRecord> {
  const at = await endBilling(context, tx, 'volume', record.id, now);
  return { ...record, ...(await newPrice(tx, context.volumeProvider.profile, record, at)) };
}

/** The size that counts as the provider's. One above its limit is a mistake, unless it was asked for. */
export function credibleGb(
  { volumeProvider }: Pick<VolumeContext, 'volumeProvider'>,
  { region, sizeGb, action }: VolumeRecord,
  shownGb: number,
): number {
  const { maxGb } = sizeLimits(volumeProvider, region);
  return shownGb <= Math.max(sizeGb, action?.toSizeGb ?? 0, maxGb) ? shownGb : sizeGb;
}

/**
 * The sizes of a volume that its provider shows with `observedGb`. Its user sees and pays the size that was last asked
 * for, as far as the provider shows it. A resize that was given up may still take effect.
 */
function sizesAfter(
  context: Pick<VolumeContext, 'volumeProvider' | 'options'>,
  record: VolumeRecord,
  observedGb: number,
  now: number,
) {
  const resize = record.action?.kind === 'resize' ? record.action : null;
  const shownGb = credibleGb(context, record, observedGb);
  const askedGb = resize?.toSizeGb ?? record.resizeGivenUpGb ?? 0;
  const isResized = resize !== null && shownGb >= askedGb;
  const isOpen = resize !== null && !isResized && !hasTimedOut(resize, now, context.options);
  const sizeGb = Math.max(record.sizeGb, Math.min(shownGb, askedGb));
  return {
    sizeGb,
    resizeGivenUpGb: isOpen ? record.resizeGivenUpGb : askedGb > sizeGb ? askedGb : null,
    providerSizeGb: observedGb === sizeGb ? null : observedGb,
    name: (isResized && resize.name) || record.name,
    action: isOpen ? resize : null,
  };
}
