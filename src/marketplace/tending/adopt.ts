import type { Instance } from '../../contract/instance.ts';
import { logNames } from '../records/deployment-record.ts';
import type { TendingContext } from './context.ts';
import { unproved } from './prove-ssh.ts';

/**
 * The instance is the deployment's. Where that ended meanwhile, it is what has to be cleaned up; where it has another
 * one, this one is left to the sweep.
 */
export async function adopt(
  { store, provider, log }: TendingContext,
  id: string,
  instance: Instance,
): Promise<void> {
  const { outcome, names } = await store.transact(async (tx) => {
    const record = await tx.deployments.byId(id);
    const names = record === null ? { deployment: id } : logNames(record);
    if (record === null || record.providerInstanceId !== null) return { outcome: 'ignored', names };
    const isWaitedFor = record.status === 'deploying';
    await tx.deployments.update({
      ...record,
      providerInstanceId: instance.id,
      sshProof: unproved(record.launch.request?.ssh_keys ?? []),
      launch: { ...record.launch, state: isWaitedFor ? 'made' : 'over', request: null },
      cleanup: isWaitedFor ? record.cleanup : 'wanted',
    });
    return { outcome: isWaitedFor ? 'adopted' : 'too late', names };
  });
  log.info(
    { ...names, provider: provider.id, instance: instance.id, outcome },
    'the provider has made an instance',
  );
}
