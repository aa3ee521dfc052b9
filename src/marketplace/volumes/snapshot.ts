import { assertTransition } from '../../contract/transitions.ts';
import type { Volume as ProviderVolume } from '../../contract/volume.ts';
import { volumeTransitions } from '../contract/volume.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import type { Reader, Store, Transaction } from '../model/store.ts';
import type { AttachmentRecord, VolumeIntent, VolumeRecord } from '../model/volume-record.ts';

export interface AttachmentSnapshot extends AttachmentRecord {
  deployment: DeploymentRecord;
}

/** A volume with the deployments it is attached to. */
export interface VolumeSnapshot {
  record: VolumeRecord;
  attachments: readonly AttachmentSnapshot[];
}

/** Reads the volume and its attachments, without locks, as they were at one moment. */
export async function readVolumeSnapshot(
  read: Pick<Reader, 'volumes' | 'deployments'>,
  id: string,
): Promise<VolumeSnapshot> {
  for (;;) {
    const record = await read.volumes.byId(id);
    if (record === null) throw new Error(`the volume ${id} no longer exists`);
    const attachments = await withDeployments(read, await read.volumes.attachmentsOf({ volumeId: id }));
    const after = await read.volumes.byId(id);
    if (after?.revision === record.revision) return { record, attachments };
  }
}

/** Locks the deployments by id, then the volume, as all code does. Returns null if the volume has changed. */
export async function lockSnapshot(
  tx: Pick<Transaction, 'volumes' | 'deployments'>,
  snapshot: VolumeSnapshot,
): Promise<VolumeSnapshot | null> {
  const attachments = await withDeployments(tx, snapshot.attachments);
  const record = await tx.volumes.byId(snapshot.record.id);
  return record?.revision === snapshot.record.revision ? { record, attachments } : null;
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
  const snapshots: AttachmentSnapshot[] = [];
  for (const attachment of attachments.toSorted((a, b) => (a.deploymentId < b.deploymentId ? -1 : 1))) {
    const deployment = await read.deployments.byId(attachment.deploymentId);
    if (deployment !== null) snapshots.push({ ...attachment, deployment });
  }
  return snapshots;
}

export function isInTransit({ intent }: Pick<AttachmentRecord, 'intent'>): boolean {
  return intent !== null;
}

/** The intent that now stands where `intent` was written: in the attachment, or else in the volume. */
export function currentOf(
  { record, attachments }: VolumeSnapshot,
  { deploymentId }: Pick<VolumeIntent, 'deploymentId'>,
): VolumeIntent | null {
  if (deploymentId === undefined) return record.action;
  return attachments.find((it) => it.deploymentId === deploymentId)?.intent ?? null;
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
  await tx.volumes.update({ ...record, ...change });
  return { ...record, ...change, revision: record.revision + 1 };
}
