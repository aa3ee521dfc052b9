import { isUsableId } from '../../client/answers.ts';
import { type Identified, orProviderError, ProviderError } from '../../client/orchestrator-client.ts';
import type { Instance } from '../../contract/instance.ts';
import { activeStatuses } from '../contract/deployment.ts';
import { type DeploymentRecord, isLost, logNames } from '../model/deployment-record.ts';
import { isBeingDestroyed, ownName } from '../model/names.ts';
import { holderOf, removeOrphan } from './cleanup.ts';
import type { SyncContext } from './context.ts';

/**
 * Deletes instances of this installation that are in two consecutive lists and that no active deployment has. An
 * instance without a row, or of a lost deployment, is only logged.
 */
export class Sweep {
  #seen: ReadonlySet<string> = new Set();
  readonly #logged = new Set<string>();

  /** Returns the pause until the next sweep. */
  async run(context: SyncContext): Promise<number> {
    const { provider, health, call } = context;
    const listed = await orProviderError(provider.client.listInstances(call));
    if (listed instanceof ProviderError) health.failed('list', listed);
    else await this.#deleteOrphans(context, listed);
    return context.options.polling.sweepMs;
  }

  async #deleteOrphans(context: SyncContext, listed: readonly Identified<Instance>[]): Promise<void> {
    context.health.answered('list');
    const before = this.#seen;
    const orphans = new Map<Identified<Instance>, DeploymentRecord>();
    for (const instance of listed) {
      const record = isBeingDestroyed(instance) ? null : await this.#orphanOf(context, instance);
      if (record !== null) orphans.set(instance, record);
    }
    this.#seen = new Set([...orphans.keys()].map(({ id }) => id));
    for (const [instance, record] of orphans)
      if (before.has(instance.id)) await removeOrphan(context, record, instance);
  }

  /** The deployment that the instance was made for. Null if the instance must not be deleted. */
  async #orphanOf(
    { store, installationId, provider, log }: SyncContext,
    instance: Identified<Instance>,
  ): Promise<DeploymentRecord | null> {
    const providerName = ownName(instance, installationId);
    if (providerName === null) return null;
    const fields = { provider: provider.id, instance: instance.id.slice(0, 255), name: providerName };
    if (!isUsableId(instance.id)) {
      this.#logOnce(
        log,
        'error',
        fields,
        'an instance of this marketplace has an id that cannot be used, and may cost money: find it at the provider by its name, and delete it there',
      );
      return null;
    }
    const record = await store.read.deployments.byProviderName(providerName);
    if (record === null || record.providerId !== provider.id) {
      this.#logOnce(
        log,
        'warn',
        fields,
        'an instance has a name of this marketplace but no deployment: it may cost money; check it at the provider',
      );
      return null;
    }
    if (isLost(record)) {
      this.#logOnce(
        log,
        'error',
        { ...fields, ...logNames(record) },
        'an instance reappeared after its deployment ended because the provider answered 404: it is kept and may cost money; `berth marketplace losses clean-up` deletes it',
      );
      return null;
    }
    const isKnown = record.providerInstanceId === instance.id;
    const isNeeded = activeStatuses.includes(record.status)
      ? record.launch.state !== 'made' || isKnown
      : // The deployment's own clean-up deletes it.
        isKnown && record.cleanup === 'wanted';
    const isFree = !isNeeded && (await holderOf(store.read, provider.id, instance.id, record.id)) === null;
    return isFree ? record : null;
  }

  #logOnce(
    log: SyncContext['log'],
    level: 'warn' | 'error',
    fields: { instance: string; name: string },
    message: string,
  ): void {
    const key = `${fields.name} ${fields.instance}`;
    if (!this.#logged.has(key)) log[level](fields, message);
    this.#logged.add(key);
  }
}
