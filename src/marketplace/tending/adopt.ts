import type { Instance } from '../../contract/instance.ts';
import type { TendingContext } from './context.ts';
import { unproved } from './prove-ssh.ts';

/**
 * The instance is the deployment's. Where that ended meanwhile, it is what has to be cleaned up; where it has another
 * one, this one is left to the sweep.
 */
export async function adopt({ store, log }: TendingContext, id: string, instance: Instance): Promise<void> {
  const outcome = await store.transact(async (tx) => {
    const record = await tx.deployments.byId(id);
    if (record === null || record.providerInstanceId !== null) return 'ignored';
    const isWaitedFor = record.status === 'deploying';
    await tx.deployments.update({
      ...record,
      providerInstanceId: instance.id,
      sshProof: unproved(record.launch.request?.ssh_keys ?? []),
      launch: { ...record.launch, state: isWaitedFor ? 'made' : 'over', request: null },
      cleanup: isWaitedFor ? record.cleanup : 'wanted',
    });
    return isWaitedFor ? 'adopted' : 'too late';
  });
  log.info({ deployment: id, instance: instance.id, outcome }, 'the provider has made an instance');
}
