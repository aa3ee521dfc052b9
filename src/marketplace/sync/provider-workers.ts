import type { SyncDeps } from './context.ts';
import type { ProviderWideProblem } from './provider-health.ts';
import { ProviderWorker } from './provider-worker.ts';

/**
 * One worker per provider: a provider that hangs delays no other. Several processes share the deployments of each
 * provider by ranges.
 */
export class ProviderWorkers {
  readonly #store: SyncDeps['store'];
  readonly #workers: ReadonlyMap<string, ProviderWorker>;
  #unsubscribe = (): void => undefined;

  constructor(deps: SyncDeps) {
    this.#store = deps.store;
    const holder = deps.random.bytes(8).toString('hex');
    this.#workers = new Map(
      deps.providers.ids().flatMap((id) => {
        const provider = deps.providers.get(id);
        return provider === undefined ? [] : [[id, new ProviderWorker(deps, provider, holder)] as const];
      }),
    );
  }

  start(): void {
    for (const worker of this.#workers.values()) worker.start();
    this.#unsubscribe = this.#store.onWake((signal) => {
      if (signal !== undefined) this.#workers.get(signal.providerId)?.wake(signal);
      else for (const worker of this.#workers.values()) worker.wake();
    });
  }

  /** Reads the catalogs that this process is the one to read. */
  async refreshCatalogs(): Promise<void> {
    await Promise.all([...this.#workers.values()].map((worker) => worker.refreshCatalog()));
  }

  /** The next polls of these deployments, whoever provides them, are so much later. */
  postpone(deploymentIds: readonly string[], byMs: number): void {
    for (const worker of this.#workers.values()) worker.postpone(deploymentIds, byMs);
  }

  /** What is wrong with calls to a provider, as far as this process makes them. */
  problemsOf(providerId: string): readonly string[] {
    return this.#workers.get(providerId)?.problems ?? [];
  }

  /** For how long calls to a provider have failed, in milliseconds, by what is wrong; as far as this process makes them. */
  failingMs(providerId: string): ReadonlyMap<ProviderWideProblem, number> {
    return this.#workers.get(providerId)?.failingMs ?? new Map();
  }

  /** How many ranges of a provider's deployments this process syncs. */
  rangesOf(providerId: string): number {
    return this.#workers.get(providerId)?.ranges ?? 0;
  }

  /** Lets what runs come to its end. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    await Promise.all([...this.#workers.values()].map((worker) => worker.stop()));
  }
}
