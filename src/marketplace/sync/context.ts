import type { CallOptions } from '../../client/orchestrator-client.ts';
import type { Endpoint } from '../deployments/endpoint.ts';
import type { Deps } from '../deps.ts';
import type { Store } from '../model/store.ts';
import type { Provider } from '../providers/provider.ts';
import type { LastAnswers } from './last-answers.ts';
import type { ProviderHealth } from './provider-health.ts';

/** The row was correct at `at`, if it still has this revision. */
type Confirmation = { id: string; revision: number; at: number };

/** Collects the times of confirmation from polls and writes them in batches. */
export class Confirmations {
  readonly #store: Store;
  readonly #answers: LastAnswers;
  readonly #pending = new Map<string, Confirmation>();

  constructor(store: Store, answers: LastAnswers) {
    this.#store = store;
    this.#answers = answers;
  }

  add(confirmation: Confirmation): void {
    this.#pending.set(confirmation.id, confirmation);
  }

  /**
   * Writes the pending confirmations: all, or those of one deployment. Those that cannot be written are kept for the
   * next flush. If a row has changed since, the next poll reads it.
   */
  async flush(id?: string): Promise<void> {
    const waiting = id === undefined ? [...this.#pending.values()] : [this.#pending.get(id) ?? []].flat();
    const { confirmationsAtOnce } = this.#store;
    for (let start = 0; start < waiting.length; start += confirmationsAtOnce) {
      const batch = waiting.slice(start, start + confirmationsAtOnce);
      const outdated = await this.#store.transact((tx) => tx.deployments.recordObservations(batch));
      for (const one of batch) if (this.#pending.get(one.id) === one) this.#pending.delete(one.id);
      for (const changed of outdated) this.#answers.rowChanged(changed);
    }
  }
}

/** A machine that needs its SSH proof, as the last poll saw it. */
export interface Unproved {
  endpoint: Endpoint;
  /** When that poll began. */
  seenAt: number;
}

export type SyncDeps = Pick<
  Deps,
  'store' | 'clock' | 'random' | 'log' | 'providers' | 'options' | 'installationId'
> & {
  /** Reads a provider's catalog and writes it through `within`. */
  refreshCatalog: (providerId: string, within: Store, call: CallOptions) => Promise<void>;
};

/** Dependencies of the steps of one provider. */
export interface SyncContext extends SyncDeps {
  /** The store without the fence of the lease, for facts that stay true when another process holds the lease. */
  unfenced: Store;
  provider: Provider;
  health: ProviderHealth;
  confirmations: Confirmations;
  answers: LastAnswers;
  /** Whether this process may still call the provider. */
  isLeaseHeld: () => boolean;
  /** The timeout of every call. */
  call: CallOptions;
  /** Machines that wait for their SSH proof, by deployment id, as the last poll saw them. */
  awaitingProof: Map<string, Unproved>;
  /** Starts the SSH proof of a deployment's machine in a separate slot, so that a host that hangs delays no poll. */
  beginProof: (id: string) => void;
  /** The attempts of each clean-up by this process, and the time of its last alarm. */
  cleanups: Map<string, { attempts: number; alarmedAt: number | null }>;
}
