import { isUsableId } from '../../client/answers.ts';
import { type Identified, ProviderError } from '../../client/orchestrator-client.ts';
import type { Instance } from '../../contract/instance.ts';
import { type DeploymentRecord, logNames } from '../model/deployment-record.ts';
import type { Reader } from '../model/store.ts';
import type { SyncContext } from './context.ts';

/** Another deployment that has this instance and whose deletion is not proved. Null: there is none. */
export async function holderOf(
  { deployments }: Pick<Reader, 'deployments'>,
  providerId: string,
  instanceId: string,
  id: string,
): Promise<DeploymentRecord | null> {
  const records = await deployments.byInstance(providerId, instanceId);
  return records.find((it) => it.id !== id && it.cleanup !== 'done') ?? null;
}

/** Returns null once the instance is gone, or if it is kept for another deployment. @throws {ProviderError} */
export async function removeInstance(
  { store, provider, log, call }: SyncContext,
  record: DeploymentRecord,
  { id, region = record.region }: Identified<Instance>,
): Promise<Pick<Instance, 'status'> | null> {
  if (!isUsableId(id))
    throw new ProviderError(
      'invalid',
      'its id cannot be used; find it at the provider by its name, and delete it there',
    );
  const holder = await holderOf(store.read, provider.id, id, record.id);
  if (holder === null) return provider.client.deleteInstance(id, region, call);
  log.error(
    { ...logNames(record), provider: provider.id, instance: id, holder: holder.id },
    'not deleting an instance that belongs to another deployment: ask the provider why both have its id',
  );
  return null;
}
