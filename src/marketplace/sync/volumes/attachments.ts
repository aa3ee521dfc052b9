import { orProviderError, ProviderError } from '../../../client/orchestrator-client.ts';
import type { Volume as ProviderVolume } from '../../../contract/volume.ts';
import { type DeploymentRecord, isActive } from '../../model/deployment-record.ts';
import { hasTimedOut, withAttempt } from '../../model/intent.ts';
import { logNames, type VolumeIntent } from '../../model/volume-record.ts';
import { isExclusive, removeAttachment, withdraw } from '../../volumes/intents.ts';
import { isAttachedAtProvider, readVolumeSnapshot, type VolumeSnapshot } from '../../volumes/snapshot.ts';
import { onLastAttempt, type Pending, type Shown, send, type VolumeContext } from './step.ts';

/** The time after which a call without a visible effect is repeated. */
const REPEATED_AFTER_MS = 5_000;

/**
 * O: both calls may be repeated; an orchestrator "may ignore" the volumes of a create, "and the client attaches". A call
 * that fails does not keep the other attachments from theirs.
 * @throws {ProviderError} the first failure
 */
export async function syncAttachments(
  context: VolumeContext,
  { record: { id }, attachments }: VolumeSnapshot,
  observed: ProviderVolume,
): Promise<void> {
  if (observed.status === 'ATTACHING' || observed.status === 'DETACHING' || observed.status === 'CREATING')
    return;
  let failure: ProviderError | undefined;
  for (const { deploymentId } of attachments) {
    // Each call writes its attempt, so the volume is read again.
    const current = await readVolumeSnapshot(context.store.read, id);
    const attachment = current.attachments.find((it) => it.deploymentId === deploymentId);
    if (!attachment?.intent) continue;
    const { deployment, intent } = attachment;
    if (isAttachedAtProvider(observed, deployment) === (intent.kind === 'attach')) continue;
    const pending = { ...current, intent };
    const silentMs = context.clock.now() - (intent.sentAt ?? Number.NEGATIVE_INFINITY);
    if (isGivenUp(context, intent, deployment, observed)) await giveUp(context, pending);
    else if (
      silentMs >= REPEATED_AFTER_MS &&
      isToSend(context, intent, deployment) &&
      !isExclusive(current.record)
    ) {
      const answer = await orProviderError(sendAttachment(context, pending, deployment));
      if (answer instanceof ProviderError) failure ??= answer;
    }
  }
  if (failure !== undefined) throw failure;
}

/** Whether the deployment allows the call: during a stop, a start or a restart it waits. */
function isToSend(
  { clock, options }: VolumeContext,
  { kind }: VolumeIntent,
  { status, action, cleanup }: DeploymentRecord,
): boolean {
  if (action !== null && !hasTimedOut(action, clock.now(), options)) return false;
  if (kind === 'attach') return status === 'running';
  // The deletion of the instance detaches its volumes.
  return isActive({ status }) || cleanup !== 'wanted';
}

/** Whether to give the attachment up. The time limit of a volume named at a launch starts when the instance runs. */
function isGivenUp(
  { clock, options }: VolumeContext,
  { kind, since }: VolumeIntent,
  deployment: DeploymentRecord,
  observed: ProviderVolume,
): boolean {
  if (!isActive(deployment) || (kind === 'attach' && deployment.status === 'deploying')) return false;
  if (kind === 'attach' && observed.status === 'ERROR') return true;
  return clock.now() - Math.max(since, deployment.startedAt ?? 0) >= options.polling.actionMs;
}

async function giveUp(context: VolumeContext, pending: Pending): Promise<void> {
  const { record, intent } = pending;
  const isGivenUp = await onLastAttempt(context, pending, (tx, current) =>
    withdraw(tx, current, intent, context.clock.now()),
  );
  if (isGivenUp !== true) return;
  context.log.warn(
    { ...logNames(record), deployment: intent.deploymentId },
    intent.kind === 'attach'
      ? 'a volume could not be attached in time: it is given up'
      : 'a volume could not be detached in time: it stays attached',
  );
}

/**
 * Sends the attach or detach. Returns null if it was not sent or was refused.
 * @throws {ProviderError} if the outcome is unknown
 */
export async function sendAttachment(
  context: VolumeContext,
  pending: Pending,
  deployment: DeploymentRecord,
): Promise<Shown | null> {
  const { record, intent } = pending;
  const { providerInstanceId } = deployment;
  const { client } = context.provider;
  const { providerVolumeId } = record;
  if (providerVolumeId === null || providerInstanceId === null) return null;
  const change = intent.kind === 'attach' ? client.attachVolume : client.detachVolume;
  const call = () => change.call(client, providerVolumeId, [providerInstanceId], context.call);
  const shown = await orProviderError(
    send(context, pending, call, async (tx, { attachments }) => {
      const locked = attachments.find((it) => it.deploymentId === deployment.id)?.deployment;
      if (locked === undefined || !isToSend(context, intent, locked)) return false;
      // The instance may restart from now on. A poll that began before is not applied.
      if (isActive(locked)) await tx.deployments.update(locked);
      return true;
    }),
  );
  if (!(shown instanceof ProviderError)) return shown;
  // The provider does not know the instance of an ended deployment, so the volume is not attached to it.
  if (intent.kind === 'detach' && shown.problem === 'not_found' && !isActive(deployment)) {
    const sent = { ...pending, intent: withAttempt(intent, context.clock.now()) };
    await onLastAttempt(context, sent, async (tx, current) => {
      const locked = current.attachments.find((it) => it.deploymentId === deployment.id);
      if (locked !== undefined) await removeAttachment(tx, current, locked);
    });
  }
  throw shown;
}
