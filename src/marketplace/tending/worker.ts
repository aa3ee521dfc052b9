import { StoreUnavailable } from '../ports/store.ts';
import type { Provider } from '../providers/provider.ts';
import { tendVolumes } from '../volumes/tend.ts';
import type { TendingContext, TendingDeps } from './context.ts';
import { ProviderLease } from './lease.ts';
import { Observations } from './observations.ts';
import { ProviderHealth } from './provider-health.ts';
import { Schedule } from './schedule.ts';
import { Sweep } from './sweep.ts';
import { tendDeployment } from './tend-deployment.ts';

/** What other processes have written is noticed so soon. */
const REREAD_MS = 5_000;
const FLUSH_MS = 5_000;
const VOLUMES_MS = 5_000;
const AFTER_FAILURE_MS = 5_000;
/** What all steps have in common that break off while the database does not answer. */
const STORE = 'store';

type Chore = 'reread' | 'flush' | 'volumes' | 'sweep';

/** Tends all that is at one provider, while it has the lease. Waits for no other provider. */
export class ProviderWorker {
  readonly #context: TendingContext;
  readonly #lease: ProviderLease;
  readonly #deployments: Schedule;
  readonly #chores: Schedule;
  readonly #sweep = new Sweep();
  readonly #failing = new Set<string>();

  constructor(deps: TendingDeps, provider: Provider, holder: string) {
    const { clock, store, options } = deps;
    this.#context = {
      ...deps,
      provider,
      health: new ProviderHealth(deps, provider.id),
      observations: new Observations(store),
      call: { timeoutMs: options.polling.callTimeoutMs },
      cleanups: new Map(),
    };
    this.#deployments = new Schedule(clock, {
      concurrency: options.polling.concurrency,
      run: (id) => this.#guard(id, () => tendDeployment(this.#context, id)),
    });
    this.#chores = new Schedule(clock, {
      concurrency: Number.POSITIVE_INFINITY,
      run: (chore) => this.#guard(chore, () => this.#do(chore as Chore)),
    });
    this.#lease = new ProviderLease(deps, {
      name: `provider:${provider.id}`,
      holder,
      changed: (isHeld) => (isHeld ? this.#begin() : this.#end()),
    });
  }

  start(): void {
    this.#lease.start();
  }

  /** Looks at once for what is new. */
  wake(): void {
    if (!this.#lease.isHeld) return;
    this.#chores.put('reread', 0);
    this.#chores.put('volumes', 0);
  }

  /** Lets what runs come to its end, and others have the provider. */
  async stop(): Promise<void> {
    await this.#lease.stop();
    await Promise.all([this.#deployments.stop(), this.#chores.stop()]);
    await this.#context.observations
      .flush()
      .catch((error) => this.#context.log.warn({ err: error }, 'what was seen last could not be written'));
    await this.#lease.release();
  }

  #begin(): void {
    const { options, random } = this.#context;
    for (const chore of ['reread', 'volumes', 'flush'] as const) this.#chores.put(chore, 0);
    this.#chores.put('sweep', Math.round(options.polling.sweepMs * random.next()));
  }

  #end(): void {
    this.#context.log.warn(
      { provider: this.#context.provider.id },
      'the lease of the provider is lost: another process may tend it now',
    );
    this.#deployments.clear();
    this.#chores.clear();
  }

  async #do(chore: Chore): Promise<number> {
    switch (chore) {
      case 'reread':
        await this.#reread();
        return REREAD_MS;
      case 'flush':
        await this.#context.observations.flush();
        return FLUSH_MS;
      case 'volumes':
        await tendVolumes(this.#context, this.#context.provider);
        return VOLUMES_MS;
      case 'sweep':
        await this.#sweep.run(this.#context);
        return this.#context.options.polling.sweepMs;
    }
  }

  async #reread(): Promise<void> {
    const { store, provider, cleanups } = this.#context;
    for (const { id, stoppedAt, launch } of await store.read.deployments.toTend(provider.id)) {
      const isNew = !this.#deployments.has(id);
      if (stoppedAt !== null && !cleanups.has(id)) this.#deployments.put(id, 0);
      else if (isNew) this.#deployments.put(id, launch.state === 'made' ? this.#firstPollMs() : 0);
    }
  }

  /** Those that an earlier process left are not asked for all at once. */
  #firstPollMs(): number {
    const { options, random } = this.#context;
    return Math.round(options.polling.intervalMs[0] * random.next());
  }

  /** A step that throws is a fault of ours or the store's: it is told of once, and tried again. */
  async #guard(key: string, step: () => Promise<number | null>): Promise<number | null> {
    if (!this.#lease.isHeld) return null;
    try {
      const afterMs = await step();
      this.#failing.delete(key);
      this.#failing.delete(STORE);
      return afterMs;
    } catch (error) {
      const cause = error instanceof StoreUnavailable ? STORE : key;
      const fields = { err: error, provider: this.#context.provider.id, step: key };
      if (!this.#failing.has(cause)) this.#context.log.error(fields, 'a step broke off; it is tried again');
      this.#failing.add(cause);
      return AFTER_FAILURE_MS;
    }
  }
}
