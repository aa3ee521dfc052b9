import type { CallOptions } from '../../client/orchestrator-client.ts';
import type { Endpoint } from '../deployments/endpoint.ts';
import type { Deps } from '../deps.ts';
import type { Store } from '../model/store.ts';
import type { Provider } from '../providers/provider.ts';
import type { ProviderHealth } from './provider-health.ts';
import type { SshAlarm } from './ssh-alarm.ts';

/** Collects the times at which polls confirmed deployments, to write them in batches. */
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
  provider: Provider;
  health: ProviderHealth;
  observations: Observations;
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
