import type { Caller } from '../caller.ts';
import { ApiError, invalid } from '../contract/errors.ts';
import { type AttachedVolume, attachedVolumeSchema } from '../contract/volume.ts';
import { ownDeployment } from '../deployments/access.ts';
import { assertNotFrozen } from '../ledger/assert-affordable.ts';
import type { Transaction } from '../ports/store.ts';
import type { DeploymentRecord } from '../records/deployment-record.ts';
import type { VolumeRecord } from '../records/volume-record.ts';
import { ownVolume } from './access.ts';
import { advanceUntil } from './advance.ts';
import { sendAttach, undoAttach } from './advance-attachments.ts';
import { assertFits, assertRoom } from './assert-attachable.ts';
import { assertIdle, assertMade } from './assert-idle.ts';
import { beginVolumeAction } from './deployment-action.ts';
import type { VolumeDeps } from './deps.ts';
import { isInTransit, type SeenVolume, transactOnVolume } from './look.ts';
import { isDefinite, refusal, slow } from './refusal.ts';
import { requireSeller, type VolumeSeller } from './seller.ts';
import { showVolume } from './show.ts';
import { writeVolume } from './write.ts';

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
  const seller = requireSeller(providers, record);
  await ownDeployment(store.read, caller, deploymentId);
  if (!seller.profile.attach.supported) throw invalid('', seller.profile.attach.reason);
  const begun = await store.transact(async (tx) =>
    begin(deps, tx, { seller, caller, volumeId, deploymentId }),
  );
  if (begun !== null) {
    const problem = await send(deps, seller, begun);
    await settle(deps, seller, begun, deadline, problem);
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
  asked: { seller: VolumeSeller; caller: Caller; volumeId: string; deploymentId: string },
): Promise<Begun | null> {
  const { seller, caller, deploymentId } = asked;
  const now = clock.now();
  const field = 'deploymentId';
  const deployment = await ownDeployment(tx, caller, deploymentId);
  const record = await ownVolume(tx, caller, asked.volumeId);
  const existing = await tx.volumes.attachmentsOf({ volumeId: record.id });
  const same = existing.find((attachment) => attachment.deploymentId === deploymentId);
  if (same?.state === 'attached') return null;
  if (deployment.status !== 'running')
    throw invalid(field, `the deployment is ${deployment.status}; it must be running`);
  if (same === undefined) assertFits(field, seller, record, existing, deployment);
  const others = await tx.volumes.attachmentsOf({ deploymentId });
  assertRoom(field, seller, others.filter(({ volumeId }) => volumeId !== record.id).length + 1);
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
  seller: VolumeSeller,
  { record, deployment, isRepeated }: Begun,
): Promise<unknown> {
  try {
    await sendAttach(deps, seller, record, deployment);
    return null;
  } catch (error) {
    if (!isDefinite(error) || isRepeated) return error;
    await transactOnVolume(deps.store, record.id, (tx, seen) => undoAttach(tx, seen, deployment.id));
    throw refusal('attach', record, error);
  }
}

async function settle(
  deps: VolumeDeps,
  seller: VolumeSeller,
  { record, deployment }: Begun,
  deadline: number,
  problem: unknown,
): Promise<void> {
  const mine = ({ attachments }: SeenVolume) =>
    attachments.find((attachment) => attachment.deployment.id === deployment.id);
  const seen = await advanceUntil(deps, seller, record.id, deadline, (volume) => {
    const attachment = mine(volume);
    return attachment === undefined || !isInTransit(attachment);
  });
  const attachment = mine(seen);
  if (attachment?.state === 'attached') return;
  if (attachment?.state === 'attaching') throw slow('attach', record, problem);
  throw new ApiError('PROVIDER_REFUSED', `${record.providerId} did not attach the volume.`);
}
