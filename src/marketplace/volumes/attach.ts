import { ApiError, invalid } from '../contract/errors.ts';
import {
  type AttachedVolume,
  attachedVolumeSchema,
  type DetachedVolume,
  detachedVolumeSchema,
  type Volume,
} from '../contract/volume.ts';
import { assertNotFrozen } from '../ledger/assert-affordable.ts';
import { assertNoAction, type DeploymentRecord, isActive } from '../model/deployment-record.ts';
import { type Caller, ownDeployment, ownVolume } from '../model/own-rows.ts';
import type { Transaction } from '../model/store.ts';
import type { AttachmentRecord, VolumeRecord } from '../model/volume-record.ts';
import { requireVolumeProvider, type VolumeProvider } from '../providers/volume-provider.ts';
import { assertIdle, assertMade, beginVolumeAction, isExclusive } from './actions.ts';
import { assertFits, assertRoom } from './limits.ts';
import { sendOrUndo, slow, type VolumeDeps } from './refusal.ts';
import { transactOnVolume, type VolumeSnapshot, writeVolume } from './snapshot.ts';
import { sendAttachment, undoAttach, undoDetach } from './sync/sync-attachments.ts';
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
  return attachedVolumeSchema.parse(await changeAttachment(attach, deps, caller, volumeId, deploymentId));
}

/**
 * M: POST /api/volumes/{volumeId}/detach; "data is preserved on detach" (Volume rules, 6).
 *
 * @throws {ApiError} as {@link attachVolume}
 */
export async function detachVolume(
  deps: VolumeDeps,
  caller: Caller,
  volumeId: string,
  deploymentId: string,
): Promise<DetachedVolume> {
  return detachedVolumeSchema.parse(await changeAttachment(detach, deps, caller, volumeId, deploymentId));
}

/** What is known when a change is to begin; all rows are locked. */
interface Asked {
  volumeProvider: VolumeProvider;
  record: VolumeRecord;
  deployment: DeploymentRecord;
  /** All attachments of the volume. */
  existing: readonly AttachmentRecord[];
  /** That to the deployment. */
  known: AttachmentRecord | undefined;
}

interface Change {
  what: 'attach' | 'detach';
  via: AttachmentRecord['state'];
  /** The state of the attachment when it is done; undefined: there is none. */
  end: AttachmentRecord['state'] | undefined;
  /** Writes what was asked for. Returns whether there is anything to send. @throws {ApiError} if it is not allowed */
  begin(deps: VolumeDeps, tx: Transaction, asked: Asked): Promise<boolean>;
  /** Undoes it after the provider has refused it; returns false if it goes on all the same. */
  undo(tx: Transaction, snapshot: VolumeSnapshot, deploymentId: string): Promise<boolean>;
}

const attach: Change = {
  what: 'attach',
  via: 'attaching',
  end: 'attached',
  begin: beginAttach,
  undo: undoAttach,
};
const detach: Change = {
  what: 'detach',
  via: 'detaching',
  end: undefined,
  begin: beginDetach,
  undo: undoDetach,
};

/** Writes the change, sends it to the provider and waits until the provider shows it. */
async function changeAttachment(
  change: Change,
  deps: VolumeDeps,
  caller: Caller,
  volumeId: string,
  deploymentId: string,
): Promise<Volume> {
  const { store, clock, options, providers } = deps;
  const deadline = clock.now() + options.lifecycleWaitMs;
  const volumeProvider = requireVolumeProvider(providers, await ownVolume(store.read, caller, volumeId));
  const begun = await store.transact(async (tx) => {
    const deployment = await ownDeployment(tx, caller, deploymentId);
    const record = await ownVolume(tx, caller, volumeId);
    const existing = await tx.volumes.attachmentsOf({ volumeId: record.id });
    const known = existing.find((attachment) => attachment.deploymentId === deploymentId);
    const asked = { volumeProvider, record, deployment, existing, known };
    if (!(await change.begin(deps, tx, asked))) return null;
    await tx.volumes.putAttachment({ volumeId: record.id, deploymentId, state: change.via });
    // An earlier call may still be worked off.
    const isRepeated = change.what === 'attach' ? known !== undefined : known?.state === 'detaching';
    return { record, deployment, isRepeated };
  });
  if (begun !== null) {
    const { record, deployment, isRepeated } = begun;
    const problem = await sendOrUndo(change.what, record, {
      send: () => sendAttachment(deps, change.what, volumeProvider, record, deployment),
      undo: async () =>
        !isRepeated &&
        transactOnVolume(store, record.id, (tx, snapshot) => change.undo(tx, snapshot, deploymentId)),
    });
    await settle(change, deps, volumeProvider, { record, deploymentId, deadline, problem });
    deps.wake(record.providerId);
  }
  return showVolume(deps, volumeId);
}

async function beginAttach({ clock, options }: VolumeDeps, tx: Transaction, asked: Asked): Promise<boolean> {
  const { volumeProvider, record, deployment, existing, known } = asked;
  const { attach: support } = volumeProvider.profile;
  if (!support.supported) throw invalid('', support.reason);
  if (known?.state === 'attached') return false;
  const now = clock.now();
  const field = 'deploymentId';
  if (deployment.status !== 'running')
    throw invalid(field, `the deployment is ${deployment.status}; it must be running`);
  if (known === undefined) assertFits(field, volumeProvider, record, existing, deployment);
  const others = await tx.volumes.attachmentsOf({ deploymentId: deployment.id });
  assertRoom(field, volumeProvider, others.filter(({ volumeId }) => volumeId !== record.id).length + 1);
  assertMade(record);
  assertIdle(record, now, options);
  await assertNotFrozen(tx, record.teamId, now);
  await beginVolumeAction(tx, deployment, now, options);
  await writeVolume(tx, record, { status: 'attached', action: { kind: 'attach', since: now } });
  return true;
}

async function beginDetach({ clock, options }: VolumeDeps, tx: Transaction, asked: Asked): Promise<boolean> {
  const { volumeProvider, record, deployment, known } = asked;
  const now = clock.now();
  if (known === undefined)
    throw invalid('deploymentId', `the volume ${record.volumeId} is not attached to the deployment`);
  assertMade(record);
  if (isExclusive(record)) assertIdle(record, now, options);
  if (isActive(deployment)) {
    assertDetachable(volumeProvider, deployment);
    assertNoAction(deployment, now, options);
    if (known.state !== 'detaching') assertIdle(record, now, options);
    if (deployment.status === 'running') await beginVolumeAction(tx, deployment, now, options);
  }
  await writeVolume(tx, record, { action: { kind: 'detach', since: now } });
  return true;
}

/** M: Volume rules, 6: some providers allow no detach while the deployment is active. */
function assertDetachable({ provider, profile }: VolumeProvider, { status }: DeploymentRecord): void {
  const { allowed, reason } = profile.detach;
  if (allowed === 'ended')
    throw invalid('', reason ?? `${provider.profile.name} does not detach volumes from active deployments.`);
  if (status === 'deploying')
    throw invalid('deploymentId', 'the deployment is deploying; wait until it is running');
}

/** @throws {ApiError} PROVIDER_SLOW where the provider has not shown it by the deadline, or PROVIDER_REFUSED */
async function settle(
  { what, via, end }: Change,
  deps: VolumeDeps,
  volumeProvider: VolumeProvider,
  sent: { record: VolumeRecord; deploymentId: string; deadline: number; problem: unknown },
): Promise<void> {
  const { record, deploymentId, deadline, problem } = sent;
  const stateIn = ({ attachments }: VolumeSnapshot) =>
    attachments.find(({ deployment }) => deployment.id === deploymentId)?.state;
  const snapshot = await syncUntil(deps, volumeProvider, record.id, deadline, (volume) =>
    [end, undefined].includes(stateIn(volume)),
  );
  const state = stateIn(snapshot);
  if (state === end) return;
  if (what === 'attach' && state !== via)
    throw new ApiError('PROVIDER_REFUSED', `${record.providerId} did not attach the volume.`);
  throw slow(what, record, problem);
}
