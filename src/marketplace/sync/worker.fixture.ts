import { LeaseLost } from '../../work/lease.ts';
import type { Deps } from '../deps.ts';
import { StoreUnavailable } from '../model/store.ts';
import type { Provider } from '../providers/provider.ts';
import { Confirmations, type SyncContext } from './context.ts';
import { sendIntent } from './intents.ts';
import { LastAnswers } from './last-answers.ts';
import { ProviderHealth } from './provider-health.ts';
import { Schedule } from './schedule.ts';
import { syncDeployment } from './sync-deployment.ts';
import { syncVolume } from './volumes/sync-volume.ts';

/** Dependencies of a provider's step. `store`: the store as a lease holder uses it. */
export function contextOf(deps: Deps, provider: Provider, store = deps.store): SyncContext {
  const answers = new LastAnswers(deps);
  const health = new ProviderHealth(deps, provider.id);
  return {
    ...deps,
    store,
    unfenced: deps.store,
    refreshCatalog: async () => undefined,
    provider,
    call: { timeoutMs: deps.options.polling.callTimeoutMs },
    cleanups: new Map(),
    awaitingProof: new Map(),
    beginProof: () => {},
    isLeaseHeld: () => true,
    health,
    confirmations: new Confirmations(store, answers),
    answers,
  };
}

type Run = (id: string) => Promise<number | null>;

/** Ignores errors after a test has closed the store or given the lease to another worker. */
function untilClosed(run: Run): Run {
  return (id) =>
    run(id).catch((error) => {
      if (error instanceof StoreUnavailable || error instanceof LeaseLost) return null;
      throw error;
    });
}

/** A worker that handles its notifications and then comes to rest: it does not poll deployments at rest. */
export class WokenWorker {
  readonly woken: string[] = [];
  readonly #context: SyncContext;
  readonly #deployments: Schedule;
  readonly #intents: Schedule;
  readonly #volumes: Schedule;
  readonly #ended = new Map<string, () => void>();
  readonly stop: () => void;

  constructor(deps: Deps, provider: Provider, fenced = deps.store) {
    const context = contextOf(deps, provider, fenced);
    this.#context = context;
    const { clock, store } = deps;
    this.#deployments = new Schedule(clock, {
      concurrency: 8,
      run: untilClosed(async (id) => {
        const pause = await syncDeployment(context, id);
        const record = await store.read.deployments.byId(id);
        return record?.action == null ? null : pause;
      }),
    });
    this.#intents = new Schedule(clock, {
      concurrency: 8,
      run: untilClosed(async (id) => {
        await sendIntent(context, id);
        const record = await store.read.deployments.byId(id);
        if (record?.action != null) this.#deployments.put(id, 0);
        return null;
      }),
    });
    this.#volumes = new Schedule(clock, {
      concurrency: 8,
      run: untilClosed(async (id) => {
        const pause = await syncVolume(context, id).finally(() => {
          this.#ended.get(id)?.();
          this.#ended.delete(id);
        });
        return (await store.read.volumes.newToSync(provider.id)).includes(id) ? pause : null;
      }),
    });
    this.stop = store.onWake((signal) => {
      if (signal?.providerId !== provider.id) return;
      const { kind, subjectId: id } = signal;
      this.woken.push(id);
      if (kind === 'ask') this.#intents.put(id, 0);
      else if (id.startsWith('vol-')) this.#volumes.put(id, 0);
      else void this.#poll(id);
    });
  }

  /** Polls only deployments with a pending change; tests poll the others themselves. */
  async #poll(id: string): Promise<void> {
    const { store } = this.#context;
    const record = await store.read.deployments.byId(id).catch(() => null);
    if (record?.action != null) this.#deployments.put(id, 0);
  }

  /** Syncs each volume that is not deleted, or still to be deleted at the provider, once. */
  async syncVolumes(): Promise<void> {
    const { store, provider } = this.#context;
    const { toSync, newToSync } = store.read.volumes;
    const ids = new Set([...(await toSync(provider.id)), ...(await newToSync(provider.id))]);
    await Promise.all(
      [...ids].map((id) => {
        const { promise, resolve } = Promise.withResolvers<void>();
        this.#ended.set(id, resolve);
        this.#volumes.put(id, 0);
        return promise;
      }),
    );
  }
}
