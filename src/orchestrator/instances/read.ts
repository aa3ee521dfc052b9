import { ApiError } from '../../contract/errors.ts';
import type { InstanceReader } from '../ports/store.ts';
import type { InstanceRecord } from './instance-record.ts';

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

/** O: GET /instances. Oldest first, without the destroyed ones; an unknown region is an empty list (settled). */
export async function listInstances(
  instances: InstanceReader,
  accountId: string,
  region?: string,
): Promise<InstanceRecord[]> {
  return instances.list(region === undefined ? { accountId } : { accountId, region });
}
