import type { Volume as ProviderVolume } from '../../../contract/volume.ts';
import { startBilling } from '../../ledger/bill.ts';
import { isActive } from '../../model/deployment-record.ts';
import type { Transaction } from '../../model/store.ts';
import type { VolumeRecord } from '../../model/volume-record.ts';
import { hourlyRate, type VolumeProvider } from '../../providers/volume-provider.ts';
import { actionAfter, endVolumeAction, ofAttachments } from '../actions.ts';
import { newPrice } from '../locations.ts';
import type { VolumeDeps } from '../refusal.ts';
import {
  type AttachmentSnapshot,
  isAttachedAtProvider,
  isInTransit,
  lockSnapshot,
  type VolumeChange,
  type VolumeSnapshot,
  writeVolume,
} from '../snapshot.ts';

type ApplyDeps = Pick<VolumeDeps, 'store' | 'clock' | 'random'>;

/** What the provider showed. */
export interface VolumeObservation {
  volume: ProviderVolume;
  /** Deployments that are being restarted for the volume: their attachments are not settled yet. */
  busy: ReadonlySet<string>;
}

/**
 * Brings the stored volume in line with an observation. The observation is dropped if the volume has changed since
 * the snapshot. Returns whether anything was written.
 */
export async function applyVolumeObservation(
  deps: ApplyDeps,
  volumeProvider: VolumeProvider,
  snapshot: VolumeSnapshot,
  observation: VolumeObservation,
): Promise<boolean> {
  return deps.store.transact(async (tx) => {
    const locked = await lockSnapshot(tx, snapshot);
    if (locked === null || !acceptsObservation(locked)) return false;
    const attachments = locked.attachments.map((before) => ({
      before,
      after: attachmentAfter(before, observation),
    }));
    const now = deps.clock.now();
    const change = await volumeChange(tx, volumeProvider, locked, attachments, observation.volume, now);
    if (Object.keys(change).length === 0) return false;
    await writeVolume(tx, locked.record, { ...change, observedAt: now });
    await writeAttachments(tx, locked.record, attachments);
    if (change.startedAt !== undefined || change.sizeGb !== undefined)
      await bill(deps, tx, { ...locked.record, ...change }, now);
    return true;
  });
}

/** A deletion is handled elsewhere. A volume in `error` stays there, but its attachments are still settled. */
function acceptsObservation({ record: { status, action }, attachments }: VolumeSnapshot): boolean {
  if (action?.kind === 'delete') return false;
  if (status === 'error') return attachments.some(isInTransit);
  return status === 'creating' || status === 'available' || status === 'attached';
}

interface AttachmentChange {
  before: AttachmentSnapshot;
  after: AttachmentSnapshot['state'] | 'gone';
}

function attachmentAfter(
  { state, deployment }: AttachmentSnapshot,
  { volume, busy }: VolumeObservation,
): AttachmentChange['after'] {
  if (state === 'attached' || busy.has(deployment.id)) return state;
  if (state === 'detaching') return isAttachedAtProvider(volume, deployment) ? state : 'gone';
  return isAttachedAtProvider(volume, deployment) && volume.status !== 'ATTACHING' ? 'attached' : state;
}

async function volumeChange(
  tx: Transaction,
  { profile }: VolumeProvider,
  { record }: VolumeSnapshot,
  attachments: readonly AttachmentChange[],
  observed: ProviderVolume,
  now: number,
): Promise<VolumeChange> {
  if (record.status === 'creating' && observed.status === 'CREATING') return {};
  const left = attachments.flatMap(({ after }) => (after === 'gone' ? [] : [{ state: after }]));
  const has = (state: AttachmentChange['after']) =>
    attachments.some(({ before, after }) => after === state && before.state !== state);
  const moved = {
    ...(has('attached') && { lastAttachedAt: now }),
    ...(has('gone') && { lastDetachedAt: now }),
  };
  if (observed.status === 'ERROR' || record.status === 'error') {
    const action = actionAfter(record, [...ofAttachments, 'resize'], left, now);
    return { ...moved, ...(record.status !== 'error' && { status: 'error' }), ...changed(record, action) };
  }
  const status = left.length > 0 ? 'attached' : 'available';
  const toSizeGb = record.action?.kind === 'resize' ? record.action.toSizeGb : undefined;
  const isResized = toSizeGb !== undefined && observed.size_gb >= toSizeGb;
  const over = isResized ? [...ofAttachments, 'resize' as const] : ofAttachments;
  return {
    ...moved,
    ...(status !== record.status && { status }),
    ...(record.startedAt === null && { startedAt: now }),
    ...changed(record, actionAfter(record, over, left, now)),
    ...(isResized && {
      sizeGb: toSizeGb,
      ...(await newPrice(tx, record.teamId, hourlyRate(profile, { ...record, sizeGb: toSizeGb }), now)),
    }),
  };
}

function changed(record: VolumeRecord, action: VolumeRecord['action']): Pick<VolumeChange, 'action'> {
  return action === record.action ? {} : { action };
}

async function writeAttachments(
  tx: Transaction,
  { id: volumeId }: VolumeRecord,
  attachments: readonly AttachmentChange[],
): Promise<void> {
  for (const { before, after } of attachments) {
    const { deployment, state } = before;
    if (after === state) continue;
    if (after === 'gone') await tx.volumes.removeAttachment(volumeId, deployment.id);
    else await tx.volumes.putAttachment({ volumeId, deploymentId: deployment.id, state: after });
    if (isActive(deployment)) await endVolumeAction(tx, deployment);
  }
}

async function bill(deps: ApplyDeps, tx: Transaction, record: VolumeRecord, at: number): Promise<void> {
  const { id, teamId, originalRateMicroUsd, rateMicroUsd, discountPercentage } = record;
  await startBilling(deps, tx, {
    subjectKind: 'volume',
    subjectId: id,
    teamId,
    state: 'stored',
    at,
    price: { originalRateMicroUsd, rateMicroUsd, discountPercentage },
  });
}
