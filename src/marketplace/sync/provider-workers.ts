import type { SyncDeps } from './context.ts';
import { ProviderWorker } from './provider-worker.ts';

/** A worker per provider, so that one that hangs delays no other. Several processes share a provider by ranges. */
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

  /** Reads the catalogs for which this process is responsible. */
  async refreshCatalogs(): Promise<void> {
    await Promise.all([...this.#workers.values()].map((worker) => worker.refreshCatalog()));
  }

  postpone(deploymentIds: readonly string[], byMs: number): void {
    for (const worker of this.#workers.values()) worker.postpone(deploymentIds, byMs);
  }

  of(providerId: string): ProviderWorker | undefined {
    return this.#workers.get(providerId);
  }

  /** Stops all workers and waits for running steps. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    await Promise.all([...this.#workers.values()].map((worker) => worker.stop()));
  }
}
