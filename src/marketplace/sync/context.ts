import type { CallOptions } from '../../client/orchestrator-client.ts';
import type { Endpoint } from '../deployments/endpoint.ts';
import type { Deps } from '../deps.ts';
import type { Store } from '../model/store.ts';
import type { Provider } from '../providers/provider.ts';
import type { ChangesFeed } from './changes-feed.ts';
import type { LastAnswers } from './last-answers.ts';
import type { ProviderHealth } from './provider-health.ts';
import type { SshAlarm } from './ssh-alarm.ts';

/** The row of this revision was right at this time. */
type Confirmation = { id: string; revision: number; at: number };

/** Collects the times at which polls confirmed deployments, to write them in batches. */
export class Observations {
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
   * Writes those that wait: all, or that of one deployment. What could not be written is kept for the next time. Where the
   * row has changed since, the next poll reads it.
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

/** What a poll saw of a machine that has to be proved. */
export interface Unproved {
  endpoint: Endpoint;
  /** When the poll that saw it began. */
  seenAt: number;
}

export type SyncDeps = Pick<
  Deps,
  'store' | 'clock' | 'random' | 'log' | 'providers' | 'options' | 'installationId'
> & {
  /** Asks a provider what it sells, and writes that through `within`. */
  refreshCatalog: (providerId: string, within: Store, call: CallOptions) => Promise<void>;
};

/** What the steps of one provider use. */
export interface SyncContext extends SyncDeps {
  /** The store without the fence of the lease: for facts that stay true when another process has the lease. */
  unfenced: Store;
  provider: Provider;
  health: ProviderHealth;
  observations: Observations;
  answers: LastAnswers;
  changes: ChangesFeed;
  /** Whether this process may still call the provider. */
  isLeaseHeld: () => boolean;
  /** For how long every call may take. */
  call: CallOptions;
  /** Machines that are waiting for their proof, by deployment: what the last poll said of them. */
  unproved: Map<string, Unproved>;
  /** Begins the proof of a deployment's machine, in a slot of its own: a host that hangs delays no poll. */
  beginProof: (id: string) => void;
  sshAlarm: SshAlarm;
  /** How often each clean-up was tried by this process, and when it told of it last. */
  cleanups: Map<string, { attempts: number; alarmedAt: number | null }>;
}
