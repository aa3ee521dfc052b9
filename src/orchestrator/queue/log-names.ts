import { logNames } from '../model/instance-record.ts';
import type { Store } from '../model/store.ts';
import { logNames as volumeNames } from '../model/volume-record.ts';
import type { Lease } from '../model/work.ts';

/** What the lines of the log about the resource of a lease share. Its id alone while the store does not answer. */
export async function namesOf({ read }: Pick<Store, 'read'>, lease: Lease): Promise<object> {
  const { resourceId, resourceKind } = lease;
  return readNames(read, lease).catch(() => ({ [resourceKind]: resourceId }));
}

async function readNames(read: Store['read'], { resourceId, resourceKind }: Lease): Promise<object> {
  if (resourceKind === 'instance') {
    const record = await read.instances.byId(resourceId);
    return record === null ? { instance: resourceId } : logNames(record);
  }
  const record = await read.volumes.byId(resourceId);
  return record === null ? { volume: resourceId } : volumeNames(record);
}
