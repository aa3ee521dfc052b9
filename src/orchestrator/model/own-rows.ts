import { ApiError } from '../../contract/errors.ts';
import type { InstanceRecord } from './instance-record.ts';
import type { InstanceReader, VolumeReader } from './store.ts';
import type { VolumeRecord } from './volume-record.ts';

/**
 * O: GET /instances/{instanceId}. A 404 is the most dangerous answer, since the client takes it for
 * DESTROYED: it comes only from our own tombstone, or for an id never issued to this account.
 *
 * @throws {ApiError} `not_found`
 */
export async function getInstance(
  instances: InstanceReader,
  accountId: string,
  id: string,
): Promise<InstanceRecord> {
  const record = await instances.byId(id);
  if (record === null || record.accountId !== accountId || record.status === 'DESTROYED')
    throw new ApiError('not_found', 'There is no such instance.');
  return record;
}

/** O: GET /volumes/{volumeId}. @throws {ApiError} `not_found` */
export async function getVolume(volumes: VolumeReader, accountId: string, id: string): Promise<VolumeRecord> {
  const record = await volumes.byId(id);
  if (record === null || record.accountId !== accountId || record.deletedAt !== null)
    throw new ApiError('not_found', 'There is no such volume.');
  return record;
}
