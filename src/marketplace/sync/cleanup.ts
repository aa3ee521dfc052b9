import { isUsableId } from '../../client/answers.ts';
import { type Identified, orProviderError, ProviderError } from '../../client/orchestrator-client.ts';
import type { Instance } from '../../contract/instance.ts';
import { activeStatuses } from '../contract/deployment.ts';
import { type DeploymentRecord, isLost, logNames } from '../model/deployment-record.ts';
import { isBeingDestroyed, isNamed, ownName } from '../model/names.ts';
import type { Reader } from '../model/store.ts';
import { isNotFoundTrusted } from '../providers/loss-cap.ts';
import type { SyncContext } from './context.ts';

const FIRST_RETRY_MS = 5_000;
const LAST_RETRY_MS = 5 * 60_000;
const ALARM_AFTER_MS = 60 * 60_000;
const STILL_THERE = 'the provider still has it';
const DENIED = 'the provider answers 404 for it and for too many others: see `berth marketplace losses`';

/**
 * Deletes the instance, and retries until it is gone. Returns the pause until the next attempt; null: it is done.
 */
export async function cleanUp(context: SyncContext, record: DeploymentRecord): Promise<number | null> {
  const { store, health, cleanups } = context;
  if (!cleanups.has(record.id)) cleanups.set(record.id, { attempts: 0, alarmedAt: null });
  const isNotFound = await orProviderError(isGone(context, record));
  if (isNotFound instanceof ProviderError) {
    health.failed(record, isNotFound);
    return retry(context, record, `${isNotFound.problem}: ${isNotFound.message}`);
  }
  // A 404 proves nothing while the provider answers 404 for too many resources.
  if (!isNotFound || !(await isNotFoundTrusted(context, record.providerId))) {
    health.answered(record.id);
    return retry(context, record, isNotFound ? DENIED : STILL_THERE);
  }
  await store.transact((tx) => tx.deployments.setCleanup(record.id, 'done'));
  cleanups.delete(record.id);
  health.forget(record.id);
  return null;
}

async function isGone(context: SyncContext, record: DeploymentRecord): Promise<boolean> {
  const { provider, call } = context;
  const { providerInstanceId: id, region, providerName } = record;
  if (id !== null) {
    const left = await removeInstance(context, record, { id, region });
    return left === null || left.status === 'DESTROYED';
  }
  // The instances that its create made are unknown. The sweep deletes those that appear later.
  const listed = await provider.client.listInstances(call);
  const found = listed.filter((instance) => isNamed(instance, providerName));
  let left = 0;
  for (const instance of found)
    if (isBeingDestroyed(instance) || (await removeInstance(context, record, instance)) !== null) left++;
  return left === 0;
}

function retry(
  { clock, random, log, cleanups }: SyncContext,
  record: DeploymentRecord,
  reason: string,
): number {
  const now = clock.now();
  const { attempts, alarmedAt } = cleanups.get(record.id) ?? { attempts: 0, alarmedAt: null };
  const openMs = now - (record.stoppedAt ?? now);
  const { providerInstanceId: instance, providerName: name } = record;
  const isAlarm = openMs >= ALARM_AFTER_MS && (alarmedAt === null || now - alarmedAt >= ALARM_AFTER_MS);
  if (isAlarm)
    log.error(
      { ...logNames(record), instance, name, openMs, reason },
      'the instance of an ended deployment may still exist and cost money: its deletion is retried until the provider confirms it',
    );
  cleanups.set(record.id, { attempts: attempts + 1, alarmedAt: isAlarm ? now : alarmedAt });
  const pause = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempts, 10));
  return Math.round(pause * (0.75 + random.next() / 2));
}

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
async function removeInstance(
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
    { ...logNames(record), instance: id, holder: holder.id },
    'not deleting an instance that belongs to another deployment: ask the provider why both have its id',
  );
  return null;
}

/** Deletes an instance that no deployment needs. If that fails, the sweep finds it again. */
export async function removeOrphan(
  context: SyncContext,
  record: DeploymentRecord,
  instance: Identified<Instance>,
): Promise<void> {
  const { health, log } = context;
  log.warn(
    { ...logNames(record), instance: instance.id, name: instance.name },
    'an instance that no deployment needs is being deleted',
  );
  const answer = await orProviderError(removeInstance(context, record, instance));
  if (answer instanceof ProviderError) health.failed(instance.id, answer);
}

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
    const keep = (level: 'warn' | 'error', message: string, names = {}) => {
      const key = `${providerName} ${fields.instance}`;
      if (!this.#logged.has(key)) log[level]({ ...fields, ...names }, message);
      this.#logged.add(key);
      return null;
    };
    if (!isUsableId(instance.id))
      return keep(
        'error',
        'an instance of this marketplace has an id that cannot be used, and may cost money: find it at the provider by its name, and delete it there',
      );
    const record = await store.read.deployments.byProviderName(providerName);
    if (record === null || record.providerId !== provider.id)
      return keep(
        'warn',
        'an instance has a name of this marketplace but no deployment: it may cost money; check it at the provider',
      );
    if (isLost(record))
      return keep(
        'error',
        'an instance reappeared after its deployment ended because the provider answered 404: it is kept and may cost money; `berth marketplace losses clean-up` deletes it',
        logNames(record),
      );
    const isKnown = record.providerInstanceId === instance.id;
    const isNeeded = activeStatuses.includes(record.status)
      ? record.launch.state !== 'made' || isKnown
      : // The deployment's own clean-up deletes it.
        isKnown && record.cleanup === 'wanted';
    const isFree = !isNeeded && (await holderOf(store.read, provider.id, instance.id, record.id)) === null;
    return isFree ? record : null;
  }
}
