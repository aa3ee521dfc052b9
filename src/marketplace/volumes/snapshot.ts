import { assertTransition } from '../../contract/transitions.ts';
import type { Volume as ProviderVolume } from '../../contract/volume.ts';
import { volumeTransitions } from '../contract/volume.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import type { Reader, Store, Transaction } from '../model/store.ts';
import type { AttachmentRecord, VolumeRecord } from '../model/volume-record.ts';

export interface AttachmentSnapshot {
  state: AttachmentRecord['state'];
  deployment: DeploymentRecord;
}

/** A volume with the deployments it is attached to. */
export interface VolumeSnapshot {
  record: VolumeRecord;
  attachments: readonly AttachmentSnapshot[];
}

/** Reads without locks, the volume first. While its revision is unchanged, the rows read after it belong to it. */
export async function readVolumeSnapshot(
  read: Pick<Reader, 'volumes' | 'deployments'>,
  id: string,
): Promise<VolumeSnapshot | null> {
  const record = await read.volumes.byId(id);
  if (record === null) return null;
  const attachments = await read.volumes.attachmentsOf({ volumeId: id });
  return { record, attachments: await withDeployments(read, attachments) };
}

/** Locks the deployments by id, then the volume, as all code does. Returns null if the volume has changed. */
export async function lockSnapshot(
  tx: Pick<Transaction, 'volumes' | 'deployments'>,
  snapshot: VolumeSnapshot,
): Promise<VolumeSnapshot | null> {
  const attachments = snapshot.attachments.map(({ deployment, state }) => ({
    volumeId: snapshot.record.id,
    deploymentId: deployment.id,
    state,
  }));
  const locked = await withDeployments(tx, attachments);
  const record = await tx.volumes.byId(snapshot.record.id);
  return record === null || record.revision !== snapshot.record.revision
    ? null
    : { record, attachments: locked };
}

/** Runs a transaction that locks the volume and its deployments, after the rows that `first` locks. */
export async function transactOnVolume<T>(
  store: Store,
  id: string,
  body: (tx: Transaction, snapshot: VolumeSnapshot) => Promise<T>,
  first?: (tx: Transaction) => Promise<void>,
): Promise<T> {
  for (;;) {
    const snapshot = await readVolumeSnapshot(store.read, id);
    if (snapshot === null) throw new Error(`the volume ${id} no longer exists`);
    const result = await store.transact(async (tx) => {
      await first?.(tx);
      const locked = await lockSnapshot(tx, snapshot);
      return locked === null ? null : { value: await body(tx, locked) };
    });
    if (result !== null) return result.value;
  }
}

async function withDeployments(
  read: Pick<Reader, 'deployments'>,
  attachments: readonly AttachmentRecord[],
): Promise<AttachmentSnapshot[]> {
  const sorted = attachments.toSorted((a, b) => (a.deploymentId < b.deploymentId ? -1 : 1));
  const snapshots: AttachmentSnapshot[] = [];
  for (const { deploymentId, state } of sorted) {
    const deployment = await read.deployments.byId(deploymentId);
    if (deployment !== null) snapshots.push({ state, deployment });
  }
  return snapshots;
}

export function isInTransit({ state }: Pick<AttachmentRecord, 'state'>): boolean {
  return state !== 'attached';
}

/** O: the list of ids is optional, the status is not. */
export function isAttachedAtProvider(
  { attached_instance_ids: ids, status }: ProviderVolume,
  { providerInstanceId }: DeploymentRecord,
): boolean {
  if (providerInstanceId === null) return false;
  if (ids !== undefined) return ids.includes(providerInstanceId);
  return status === 'ATTACHING' || status === 'ATTACHED' || status === 'DETACHING';
}

export type VolumeChange = Partial<Omit<VolumeRecord, 'id' | 'revision' | 'totalCostMicroUsd'>>;

/** The only writer of existing volumes. @throws {IllegalTransition} if the table does not allow the transition */
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
