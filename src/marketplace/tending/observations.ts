import type { Store } from '../ports/store.ts';

/** Until when deployments were seen to be what their records say, kept until they are written together. */
export class Observations {
  readonly #store: Store;
  #pending = new Map<string, { id: string; revision: number; at: number }>();

  constructor(store: Store) {
    this.#store = store;
  }

  add(observation: { id: string; revision: number; at: number }): void {
    this.#pending.set(observation.id, observation);
  }

  /** Writes what is there. What could not be written is kept for the next time. */
  async flush(): Promise<void> {
    const batch = this.#pending;
    if (batch.size === 0) return;
    this.#pending = new Map();
    try {
      await this.#store.transact((tx) => tx.deployments.recordObservations([...batch.values()]));
    } catch (error) {
      this.#pending = new Map([...batch, ...this.#pending]);
      throw error;
    }
  }
}
