import { ApiError, invalid } from '../contract/errors.ts';
import { type AttachedVolume, attachedVolumeSchema } from '../contract/volume.ts';
import { assertNotFrozen } from '../ledger/assert-affordable.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { type Caller, ownDeployment, ownVolume } from '../model/own-rows.ts';
import type { Transaction } from '../model/store.ts';
import type { AttachmentRecord, VolumeRecord } from '../model/volume-record.ts';
import { requireVolumeProvider, type VolumeProvider } from '../providers/volume-provider.ts';
import { assertIdle, assertMade, beginVolumeAction } from './actions.ts';
import { isDefinite, refusal, slow, type VolumeDeps } from './refusal.ts';
import { isInTransit, transactOnVolume, type VolumeSnapshot, writeVolume } from './snapshot.ts';
import { sendAttach, undoAttach } from './sync/sync-attachments.ts';
import { syncUntil } from './sync/sync-volume.ts';
import { showVolume } from './to-volume.ts';

/**
 * M: POST /api/volumes/{volumeId}/attach. Where the provider restarts the instance for it, the answer waits for that.
 * A volume that is there already is success.
 *
 * @throws {ApiError} VALIDATION_ERROR, FORBIDDEN, NOT_FOUND, CHANGE_IN_PROGRESS or PROVIDER_REFUSED: nothing changed.
 *   PROVIDER_SLOW: the request went through, or may have.
 */
export async function attachVolume(
  deps: VolumeDeps,
  caller: Caller,
  volumeId: string,
  deploymentId: string,
): Promise<AttachedVolume> {
  const { store, clock, options, providers } = deps;
  const deadline = clock.now() + options.lifecycleWaitMs;
  const record = await ownVolume(store.read, caller, volumeId);
  const volumeProvider = requireVolumeProvider(providers, record);
  await ownDeployment(store.read, caller, deploymentId);
  if (!volumeProvider.profile.attach.supported) throw invalid('', volumeProvider.profile.attach.reason);
  const begun = await store.transact(async (tx) =>
    begin(deps, tx, { volumeProvider, caller, volumeId, deploymentId }),
  );
  if (begun !== null) {
    const problem = await send(deps, volumeProvider, begun);
    await settle(deps, volumeProvider, begun, deadline, problem);
    deps.wake(record.providerId);
  }
  return attachedVolumeSchema.parse(await showVolume(deps, volumeId));
}

interface Begun {
  record: VolumeRecord;
  deployment: DeploymentRecord;
  /** An earlier call may still be worked off. */
  isRepeated: boolean;
}

/** Null: it is attached already. */
async function begin(
  { clock, options }: VolumeDeps,
  tx: Transaction,
  asked: { volumeProvider: VolumeProvider; caller: Caller; volumeId: string; deploymentId: string },
): Promise<Begun | null> {
  const { volumeProvider, caller, deploymentId } = asked;
  const now = clock.now();
  const field = 'deploymentId';
  const deployment = await ownDeployment(tx, caller, deploymentId);
  const record = await ownVolume(tx, caller, asked.volumeId);
  const existing = await tx.volumes.attachmentsOf({ volumeId: record.id });
  const same = existing.find((attachment) => attachment.deploymentId === deploymentId);
  if (same?.state === 'attached') return null;
  if (deployment.status !== 'running')
    throw invalid(field, `the deployment is ${deployment.status}; it must be running`);
  if (same === undefined) assertFits(field, volumeProvider, record, existing, deployment);
  const others = await tx.volumes.attachmentsOf({ deploymentId });
  assertRoom(field, volumeProvider, others.filter(({ volumeId }) => volumeId !== record.id).length + 1);
  assertMade(record);
  assertIdle(record, now, options);
  await assertNotFrozen(tx, record.teamId, now);
  await beginVolumeAction(tx, deployment, now, options);
  await writeVolume(tx, record, { status: 'attached', action: { kind: 'attach', since: now } });
  await tx.volumes.putAttachment({ volumeId: record.id, deploymentId, state: 'attaching' });
  return { record, deployment, isRepeated: same !== undefined };
}

/** What came in place of an answer; null: the provider accepted it. @throws what the user is told of a refusal */
async function send(
  deps: VolumeDeps,
  volumeProvider: VolumeProvider,
  { record, deployment, isRepeated }: Begun,
): Promise<unknown> {
  try {
    await sendAttach(deps, volumeProvider, record, deployment);
    return null;
  } catch (error) {
    if (!isDefinite(error) || isRepeated) return error;
    await transactOnVolume(deps.store, record.id, (tx, snapshot) => undoAttach(tx, snapshot, deployment.id));
    throw refusal('attach', record, error);
  }
}

async function settle(
  deps: VolumeDeps,
  volumeProvider: VolumeProvider,
  { record, deployment }: Begun,
  deadline: number,
  problem: unknown,
): Promise<void> {
  const mine = ({ attachments }: VolumeSnapshot) =>
    attachments.find((attachment) => attachment.deployment.id === deployment.id);
  const snapshot = await syncUntil(deps, volumeProvider, record.id, deadline, (volume) => {
    const attachment = mine(volume);
    return attachment === undefined || !isInTransit(attachment);
  });
  const attachment = mine(snapshot);
  if (attachment?.state === 'attached') return;
  if (attachment?.state === 'attaching') throw slow('attach', record, problem);
  throw new ApiError('PROVIDER_REFUSED', `${record.providerId} did not attach the volume.`);
}

/** Where volumes are to be attached. */
interface AttachTarget {
  providerId: string;
  region: string;
  teamId: string;
}

/**
 * What holds for every attachment, at a launch too (M: `volumeIds`, "each must match the deployment's provider and
 * region"). `field` is what the request named the volume by.
 *
 * @throws {ApiError} VALIDATION_ERROR
 */
export function assertFits(
  field: string,
  { provider, profile }: VolumeProvider,
  volume: VolumeRecord,
  existing: readonly AttachmentRecord[],
  target: AttachTarget,
): void {
  const named = `the volume ${volume.volumeId}`;
  if (volume.providerId !== target.providerId)
    throw invalid(field, `${named} is at ${volume.providerId}, the deployment at ${target.providerId}`);
  if (volume.region !== target.region)
    throw invalid(field, `${named} is in ${volume.region}, the deployment in ${target.region}`);
  if (volume.teamId !== target.teamId)
    throw invalid(field, `${named} belongs to another team than the deployment`);
  if (volume.status !== 'available' && volume.status !== 'attached')
    throw invalid(field, `${named} is ${volume.status}; it must be available`);
  if (existing.length > 0 && !profile.shareable)
    throw invalid(
      field,
      `${named} is on another deployment; on ${provider.profile.name} a volume is on one instance at a time`,
    );
}

/**
 * M: Limits, "Volumes per instance".
 *
 * @throws {ApiError} VALIDATION_ERROR
 */
export function assertRoom(field: string, { provider, profile }: VolumeProvider, wanted: number): void {
  const { max_per_instance: max } = profile;
  if (max === null || wanted <= max) return;
  const limit = max === 1 ? '1 volume' : `${max} volumes`;
  throw invalid(field, `${provider.profile.name} has at most ${limit} per instance`);
}
