import type { InstanceRecord } from './instance-record.ts';
import type { Transaction } from './store.ts';
import type { VolumeRecord } from './volume-record.ts';

/** Reads and so locks instances in the one order that every transaction keeps; an id without a row is left out. */
export function lockInstances(
  { instances }: Pick<Transaction, 'instances'>,
  ids: Iterable<string>,
): Promise<Map<string, InstanceRecord>> {
  return inOrder(ids, (id) => instances.byId(id));
}

/** {@link lockInstances}, for volumes: after the instances. */
export function lockVolumes(
  { volumes }: Pick<Transaction, 'volumes'>,
  ids: Iterable<string>,
): Promise<Map<string, VolumeRecord>> {
  return inOrder(ids, (id) => volumes.byId(id));
}

/** The volumes that have something to do with instances which are locked already: none is added meanwhile. */
export async function lockVolumesOf(
  tx: Pick<Transaction, 'volumes'>,
  instanceIds: Iterable<string>,
  ...others: string[]
): Promise<Map<string, VolumeRecord>> {
  const ids = new Set(others);
  for (const instanceId of instanceIds)
    for (const { volumeId } of await tx.volumes.attachmentsOfInstance(instanceId)) ids.add(volumeId);
  return lockVolumes(tx, ids);
}

async function inOrder<Row>(
  ids: Iterable<string>,
  read: (id: string) => Promise<Row | null>,
): Promise<Map<string, Row>> {
  const rows = new Map<string, Row>();
  for (const id of [...new Set(ids)].sort()) {
    const row = await read(id);
    if (row !== null) rows.set(id, row);
  }
  return rows;
}
