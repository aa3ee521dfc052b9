import { ProviderError } from '../../client/orchestrator-client.ts';
import type { Instance } from '../../contract/instance.ts';
import { activeStatuses } from '../contract/deployment.ts';
import type { TendingContext } from './context.ts';
import { isBeingDestroyed, ownName } from './names.ts';

/**
 * Finds instances that carry our name and that no live deployment has, in two phases: seen in one list, still there in
 * the next. One whose deployment is over, or has another instance, is deleted. One that no row knows is only told of.
 */
export class Sweep {
  #seen: ReadonlySet<string> = new Set();
  readonly #told = new Set<string>();

  async run(context: TendingContext): Promise<void> {
    const { provider, health, call } = context;
    try {
      const listed = await provider.client.listInstances(call);
      health.answered('list');
      const before = this.#seen;
      const seen = new Set<string>();
      for (const instance of listed)
        if (!isBeingDestroyed(instance) && (await this.#isLeftOver(context, instance))) seen.add(instance.id);
      this.#seen = seen;
      for (const instance of listed)
        if (seen.has(instance.id) && before.has(instance.id)) await remove(context, instance);
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      health.failed('list', error);
    }
  }

  async #isLeftOver(
    { store, installationId, provider, log }: TendingContext,
    instance: Instance,
  ): Promise<boolean> {
    const providerName = ownName(instance, installationId);
    if (providerName === null) return false;
    const record = await store.read.deployments.byProviderName(providerName);
    if (record === null || record.providerId !== provider.id) {
      if (!this.#told.has(instance.id))
        log.warn(
          { provider: provider.id, instance: instance.id, name: instance.name },
          'an instance has our name and no deployment: it may be costing money, look at the provider',
        );
      this.#told.add(instance.id);
      return false;
    }
    const isKnown = record.providerInstanceId === instance.id;
    if (activeStatuses.includes(record.status)) return record.launch.state === 'made' && !isKnown;
    // Its own clean-up is under way.
    return !(isKnown && record.cleanup === 'wanted');
  }
}

async function remove({ provider, health, log, call }: TendingContext, instance: Instance): Promise<void> {
  log.warn(
    { provider: provider.id, instance: instance.id, name: instance.name },
    'an instance has no live deployment any more: it is deleted',
  );
  try {
    await provider.client.deleteInstance(instance.id, instance.region, call);
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error;
    health.failed(instance.id, error);
  }
}
