import { invalid } from '../contract/errors.ts';
import { type DetachedVolume, detachedVolumeSchema } from '../contract/volume.ts';
import { assertNoAction, type DeploymentRecord, isActive } from '../model/deployment-record.ts';
import { type Caller, ownDeployment, ownVolume } from '../model/own-rows.ts';
import type { Transaction } from '../model/store.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import { requireVolumeProvider, type VolumeProvider } from '../providers/volume-provider.ts';
import { assertIdle, assertMade, beginVolumeAction, isExclusive } from './actions.ts';
import { isDefinite, refusal, slow, type VolumeDeps } from './refusal.ts';
import { transactOnVolume, type VolumeSnapshot, writeVolume } from './snapshot.ts';
import { sendDetach, undoDetach } from './sync/sync-attachments.ts';
import { syncUntil } from './sync/sync-volume.ts';
import { showVolume } from './to-volume.ts';

/**
 * M: POST /api/volumes/{volumeId}/detach; "data is preserved on detach" (Volume rules, 6).
 *
 * @throws {ApiError} VALIDATION_ERROR, FORBIDDEN, NOT_FOUND, CHANGE_IN_PROGRESS or PROVIDER_REFUSED: nothing changed.
 *   PROVIDER_SLOW: the request went through, or may have.
 */
export async function detachVolume(
  deps: VolumeDeps,
  caller: Caller,
  volumeId: string,
  deploymentId: string,
): Promise<DetachedVolume> {
  const { store, clock, options, providers } = deps;
  const deadline = clock.now() + options.lifecycleWaitMs;
  const record = await ownVolume(store.read, caller, volumeId);
  const volumeProvider = requireVolumeProvider(providers, record);
  const begun = await store.transact((tx) =>
    begin(deps, tx, { volumeProvider, caller, volumeId, deploymentId }),
  );
  const problem = await send(deps, volumeProvider, begun);
  await settle(deps, volumeProvider, begun, deadline, problem);
  deps.wake(record.providerId);
  return detachedVolumeSchema.parse(await showVolume(deps, volumeId));
}

interface Begun {
  record: VolumeRecord;
  deployment: DeploymentRecord;
  /** An earlier call may still be worked off. */
  isRepeated: boolean;
}

async function begin(
  { clock, options }: VolumeDeps,
  tx: Transaction,
  asked: { volumeProvider: VolumeProvider; caller: Caller; volumeId: string; deploymentId: string },
): Promise<Begun> {
  const { volumeProvider, caller, deploymentId } = asked;
  const now = clock.now();
  const deployment = await ownDeployment(tx, caller, deploymentId);
  const record = await ownVolume(tx, caller, asked.volumeId);
  const existing = await tx.volumes.attachmentsOf({ volumeId: record.id });
  const attachment = existing.find((one) => one.deploymentId === deploymentId);
  if (attachment === undefined)
    throw invalid('deploymentId', `the volume ${record.volumeId} is not attached to the deployment`);
  assertMade(record);
  if (isExclusive(record)) assertIdle(record, now, options);
  if (isActive(deployment)) {
    assertAllowed(volumeProvider, deployment);
    assertNoAction(deployment, now, options);
    if (attachment.state !== 'detaching') assertIdle(record, now, options);
    if (deployment.status === 'running') await beginVolumeAction(tx, deployment, now, options);
  }
  await writeVolume(tx, record, { action: { kind: 'detach', since: now } });
  await tx.volumes.putAttachment({ volumeId: record.id, deploymentId, state: 'detaching' });
  return { record, deployment, isRepeated: attachment.state === 'detaching' };
}

/** M: Volume rules, 6: some providers allow no detach while the deployment is active. */
function assertAllowed({ provider, profile }: VolumeProvider, { status }: DeploymentRecord): void {
  const { allowed, reason } = profile.detach;
  if (allowed === 'ended')
    throw invalid('', reason ?? `${provider.profile.name} does not detach volumes from active deployments.`);
  if (status === 'deploying')
    throw invalid('deploymentId', 'the deployment is deploying; wait until it is running');
}

/** What came in place of an answer; null: the provider accepted it. @throws what the user is told of a refusal */
async function send(
  deps: VolumeDeps,
  volumeProvider: VolumeProvider,
  { record, deployment, isRepeated }: Begun,
): Promise<unknown> {
  try {
    await sendDetach(deps, volumeProvider, record, deployment);
    return null;
  } catch (error) {
    // An unknown attachment of an ended instance counts as detached; the next observation shows it.
    if (!isDefinite(error) || !isActive(deployment) || isRepeated) return error;
    const undo = (tx: Transaction, snapshot: VolumeSnapshot) => undoDetach(tx, snapshot, deployment.id);
    if (await transactOnVolume(deps.store, record.id, undo)) throw refusal('detach', record, error);
    return error;
  }
}

async function settle(
  deps: VolumeDeps,
  volumeProvider: VolumeProvider,
  { record, deployment }: Begun,
  deadline: number,
  problem: unknown,
): Promise<void> {
  const isThere = ({ attachments }: VolumeSnapshot) =>
    attachments.some((attachment) => attachment.deployment.id === deployment.id);
  const snapshot = await syncUntil(deps, volumeProvider, record.id, deadline, (volume) => !isThere(volume));
  if (isThere(snapshot)) throw slow('detach', record, problem);
}
