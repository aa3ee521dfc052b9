import { ProviderError } from '../../../client/orchestrator-client.ts';
import type { Volume as ProviderVolume } from '../../../contract/volume.ts';
import { type DeploymentRecord, isActive } from '../../model/deployment-record.ts';
import { withAttempt } from '../../model/intent.ts';
import type { Transaction } from '../../model/store.ts';
import { logNames, type VolumeIntent } from '../../model/volume-record.ts';
import { beginVolumeAction, isExclusive } from '../../volumes/intents.ts';
import { undoAttach, undoDetach } from '../../volumes/settle.ts';
import {
  type AttachmentSnapshot,
  isAttachedAtProvider,
  isInTransit,
  readVolumeSnapshot,
  transactOnVolume,
  type VolumeSnapshot,
} from '../../volumes/snapshot.ts';
import { beginAttempt, isDecided, type Sent, type Shown, settleError, type VolumeContext } from './step.ts';

/** The time after which a call without a visible effect is repeated. */
const REPEATED_AFTER_MS = 5_000;

/** The attachment that the intent concerns. */
export function findAttachment(
  { attachments }: VolumeSnapshot,
  { kind, deploymentId }: VolumeIntent,
): AttachmentSnapshot | undefined {
  const state = kind === 'attach' ? 'attaching' : 'detaching';
  return attachments.find((it) => it.deployment.id === deploymentId && it.state === state);
}

/** O: both calls may be repeated; an orchestrator "may ignore" the volumes of a create, "and the client attaches". */
export async function syncAttachments(
  context: VolumeContext,
  { record, attachments }: VolumeSnapshot,
  observed: ProviderVolume,
): Promise<void> {
  if (observed.status === 'ATTACHING' || observed.status === 'DETACHING' || observed.status === 'CREATING')
    return;
  const { sentAt = null } = record.action ?? {};
  const mayRepeat = sentAt === null || context.clock.now() - sentAt >= REPEATED_AFTER_MS;
  for (const { deployment } of attachments.filter(isInTransit)) {
    // Each call writes its attempt into the volume, so the volume is read again.
    const current = await readVolumeSnapshot(context.store.read, record.id);
    const attachment = current?.attachments.find((it) => it.deployment.id === deployment.id);
    if (current === null || attachment === undefined) continue;
    const isShown = isAttachedAtProvider(observed, attachment.deployment);
    if (attachment.state === 'attaching' ? isShown : !isShown) continue;
    if (isGivenUp(context, current, attachment, observed)) await giveUp(context, current, attachment);
    else if (mayRepeat && isToSend(attachment) && !isExclusive(current.record))
      await sendAttachment(context, current, attachment);
  }
}

function isToSend({ state, deployment }: AttachmentSnapshot): boolean {
  if (state === 'attaching') return deployment.status === 'running';
  // The deletion of the instance detaches its volumes.
  return state === 'detaching' && (isActive(deployment) || deployment.cleanup !== 'wanted');
}

/** Whether to give the attachment up. The time limit of a volume named at a launch starts when the instance runs. */
function isGivenUp(
  { clock, options }: VolumeContext,
  { record: { action } }: VolumeSnapshot,
  { state, deployment }: AttachmentSnapshot,
  observed: ProviderVolume,
): boolean {
  if (!isActive(deployment) || (state === 'attaching' && deployment.status === 'deploying')) return false;
  if (state === 'attaching' && observed.status === 'ERROR') return true;
  const since = Math.max(action?.since ?? 0, deployment.startedAt ?? 0);
  return clock.now() - since >= options.polling.actionMs;
}

async function giveUp(
  { store, log }: VolumeContext,
  { record }: VolumeSnapshot,
  { state, deployment }: AttachmentSnapshot,
): Promise<void> {
  const undo = state === 'attaching' ? undoAttach : undoDetach;
  if (!(await transactOnVolume(store, record.id, (tx, snapshot) => undo(tx, snapshot, deployment.id))))
    return;
  log.warn(
    { ...logNames(record), deployment: deployment.id },
    state === 'attaching'
      ? 'a volume could not be attached in time: it is given up'
      : 'a volume could not be detached in time: it stays attached',
  );
}

/**
 * Commits the attempt, then calls the provider. Returns null if the call was not sent or was refused.
 * @throws {ProviderError} if the outcome is unknown
 */
export async function sendAttachment(
  context: VolumeContext,
  snapshot: VolumeSnapshot,
  { state, deployment }: AttachmentSnapshot,
): Promise<Shown | null> {
  const { providerVolumeId } = snapshot.record;
  const { providerInstanceId } = deployment;
  if (providerVolumeId === null || providerInstanceId === null) return null;
  const sent = await beginAttempt(context, snapshot, async (tx, current) => {
    const now = current.attachments.find((it) => it.deployment.id === deployment.id);
    return now?.state === state && holdDeployment(context, tx, state, now.deployment);
  });
  if (sent === null) return null;
  const { client } = context.provider;
  try {
    const volume =
      state === 'attaching'
        ? await client.attachVolume(providerVolumeId, [providerInstanceId], context.call)
        : await client.detachVolume(providerVolumeId, [providerInstanceId], context.call);
    return { snapshot: sent, volume, isAccepted: true };
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    // At a launch no request waits, and the end of the intent would keep the other calls from being sent.
    if (sent.record.action.deploymentId !== deployment.id && !isDecided(error)) throw error;
    if (await settleError(context, sent, error, undoOf(sent, state, deployment.id))) return null;
    // The instance is gone at the provider, so the volume is not attached to it.
    const isGone = state === 'detaching' && error.problem === 'not_found' && !isActive(deployment);
    if (!isGone) throw error;
    await giveUp(context, snapshot, { state: 'attaching', deployment });
    return null;
  }
}

/** A detach is not undone after a refusal if an earlier call has no answer: the volume may be detached. */
function undoOf({ record }: Sent, state: AttachmentSnapshot['state'], deploymentId: string) {
  return async (tx: Transaction, current: Sent): Promise<boolean> => {
    if (state === 'attaching') return undoAttach(tx, current, deploymentId);
    return record.action.attempt === 1 && undoDetach(tx, current, deploymentId);
  };
}

/** Whether the deployment allows the call. On a running deployment, its intent blocks other changes. */
async function holdDeployment(
  { clock, options }: VolumeContext,
  tx: Transaction,
  state: AttachmentSnapshot['state'],
  deployment: DeploymentRecord,
): Promise<boolean> {
  const { action, status, userId: by } = deployment;
  if (status !== 'running') return state === 'detaching';
  const now = clock.now();
  if (action === null) await beginVolumeAction(tx, deployment, { by, now, isSent: true }, options);
  else if (action.kind === 'volume')
    await tx.deployments.update({ ...deployment, action: withAttempt(action, now) });
  else return false;
  return true;
}
