import { assertTransition } from '../../contract/transitions.ts';
import type { Volume as ProviderVolume } from '../../contract/volume.ts';
import { volumeTransitions } from '../contract/volume.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import type { Reader, Store, Transaction } from '../model/store.ts';
import type { AttachmentRecord, VolumeRecord } from '../model/volume-record.ts';

export interface SeenAttachment {
  state: AttachmentRecord['state'];
  deployment: DeploymentRecord;
}

/** A volume with what it is attached to. */
export interface SeenVolume {
  record: VolumeRecord;
  attachments: readonly SeenAttachment[];
}

/** By the internal id; nothing is locked. */
export async function seeVolume(
  read: Pick<Reader, 'volumes' | 'deployments'>,
  id: string,
): Promise<SeenVolume | null> {
  const record = await read.volumes.byId(id);
  if (record === null) return null;
  const attachments = await read.volumes.attachmentsOf({ volumeId: id });
  return { record, attachments: await withDeployments(read, attachments) };
}

/**
 * The same, locked: the deployments in the order of their ids and then the volume, as everybody does. Null where the
 * volume has changed since `seen`.
 */
export async function lockSeen(
  tx: Pick<Transaction, 'volumes' | 'deployments'>,
  seen: SeenVolume,
): Promise<SeenVolume | null> {
  const attachments = seen.attachments.map(({ deployment, state }) => ({
    volumeId: seen.record.id,
    deploymentId: deployment.id,
    state,
  }));
  const locked = await withDeployments(tx, attachments);
  const record = await tx.volumes.byId(seen.record.id);
  return record === null || record.revision !== seen.record.revision ? null : { record, attachments: locked };
}

/** A transaction on a volume and its deployments as they are now, all locked after what `first` locks. */
export async function transactOnVolume<T>(
  store: Store,
  id: string,
  body: (tx: Transaction, seen: SeenVolume) => Promise<T>,
  first: (tx: Transaction) => Promise<void> = async () => undefined,
): Promise<T> {
  for (;;) {
    const seen = await seeVolume(store.read, id);
    if (seen === null) throw new Error(`the volume ${id} is not there any more`);
    const result = await store.transact(async (tx) => {
      await first(tx);
      const locked = await lockSeen(tx, seen);
      return locked === null ? null : { value: await body(tx, locked) };
    });
    if (result !== null) return result.value;
  }
}

async function withDeployments(
  read: Pick<Reader, 'deployments'>,
  attachments: readonly AttachmentRecord[],
): Promise<SeenAttachment[]> {
  const sorted = attachments.toSorted((a, b) => (a.deploymentId < b.deploymentId ? -1 : 1));
  const seen: SeenAttachment[] = [];
  for (const { deploymentId, state } of sorted) {
    const deployment = await read.deployments.byId(deploymentId);
    if (deployment !== null) seen.push({ state, deployment });
  }
  return seen;
}

export function isInTransit({ state }: Pick<AttachmentRecord, 'state'>): boolean {
  return state !== 'attached';
}

/** Whether the provider has a record of the volume on this instance. The list of ids is optional in O:, the status is not. */
export function isHeld(
  { attached_instance_ids: ids, status }: ProviderVolume,
  { providerInstanceId }: DeploymentRecord,
): boolean {
  if (providerInstanceId === null) return false;
  if (ids !== undefined) return ids.includes(providerInstanceId);
  return status === 'ATTACHING' || status === 'ATTACHED' || status === 'DETACHING';
}

export type VolumeChange = Partial<Omit<VolumeRecord, 'id' | 'revision' | 'totalCostMicroUsd'>>;

/** The one writer of a volume that exists. @throws {IllegalTransition} if the table has no such edge. */
export async function writeVolume(
  tx: Pick<Transaction, 'volumes'>,
  record: VolumeRecord,
  change: VolumeChange,
): Promise<VolumeRecord> {
  if (change.status !== undefined && change.status !== record.status)
    assertTransition(volumeTransitions, record.status, change.status, `volume ${record.id}`);
  const written = { ...record, ...change };
  await tx.volumes.update(written);
  return written;
}
