import { SharedLeases } from '../../work/shared-leases.ts';
import type { Transaction } from '../model/store.ts';
import type { SyncDeps } from './context.ts';
import { ProviderWorker } from './provider-worker.ts';

/** The subject of the signal that processes send when leases are free. */
const LEASES_FREE = 'leases';

/** The lease on calls to a provider. */
export const leaseOf = (providerId: string): string => `provider:${providerId}`;

/** A worker per provider, so that one that hangs delays no other. Several processes share the providers. */
export class ProviderWorkers {
  readonly #store: SyncDeps['store'];
  readonly #workers: ReadonlyMap<string, ProviderWorker>;
  readonly #leases: SharedLeases<Transaction>;
  #unsubscribe = (): void => undefined;

  constructor(deps: SyncDeps) {
    this.#store = deps.store;
    const workers = deps.providers.ids().flatMap((id) => {
      const provider = deps.providers.get(id);
      const name = leaseOf(id);
      const lease = { isHeld: () => this.#leases.isHeld(name), lost: () => this.#leases.lost(name) };
      return provider === undefined ? [] : [[id, new ProviderWorker(deps, provider, lease)] as const];
    });
    this.#workers = new Map(workers);
    const byLease = new Map(workers.map(([id, worker]) => [leaseOf(id), worker]));
    this.#leases = new SharedLeases(deps, {
      names: [...byLease.keys()],
      holder: deps.random.bytes(8).toString('hex'),
      begin: (lease) => byLease.get(lease.name)?.begin(lease),
      end: (name) => byLease.get(name)?.end(),
      drain: async (name) => byLease.get(name)?.drain(),
      notify: (tx) => tx.signals.wake('', LEASES_FREE),
    });
  }

  start(): void {
    this.#leases.balance();
    this.#unsubscribe = this.#store.onWake((signal) => {
      if (signal?.subjectId === LEASES_FREE) this.#leases.balance();
      else if (signal !== undefined) this.#workers.get(signal.providerId)?.wake(signal);
      else for (const worker of this.#workers.values()) worker.wake();
    });
  }

  /** Reads the catalogs for which this process is responsible. */
  async refreshCatalogs(): Promise<void> {
    await this.#leases.claimed;
    await Promise.all([...this.#workers.values()].map((worker) => worker.refreshCatalog()));
  }

  postpone(deploymentIds: readonly string[], byMs: number): void {
    for (const worker of this.#workers.values()) worker.postpone(deploymentIds, byMs);
  }

  of(providerId: string): ProviderWorker | undefined {
    return this.#workers.get(providerId);
  }

  /** Stops all workers, waits for running steps, and releases each lease when those of its provider have ended. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    await this.#leases.stop();
    await Promise.all(
      [...this.#workers].map(async ([id, worker]) => {
        await worker.stop();
        await this.#leases.release([leaseOf(id)]);
      }),
    );
  }
}
