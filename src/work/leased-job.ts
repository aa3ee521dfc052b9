import type { Clock, Random, Timer } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import { LeaseLost, type LeaseRecord, type LeasingStore } from './lease.ts';

export interface Job<S> {
  /** Of the lease, and in the log. */
  name: string;
  everyMs: number;
  /** One round. All that it writes goes through `store`, which refuses it once another process has the lease. */
  work(store: S): Promise<void>;
}

export interface LeasedJobDeps<S> {
  store: S;
  clock: Clock;
  random: Pick<Random, 'bytes'>;
  log: Log;
  /** The store as the holder of the lease writes it. */
  fence: (store: S, lease: LeaseRecord) => S;
}

const MIN_LEASE_MS = 60_000;
const LOST = 'a round of a job outlasted its lease: another process has it now and does the rest';

/**
 * Does a job again and again, in whichever process holds its lease. A round that takes longer than the lease may meet
 * another one elsewhere: from then on it writes nothing.
 */
export class LeasedJob<S extends LeasingStore> {
  readonly #deps: LeasedJobDeps<S>;
  readonly #job: Job<S>;
  readonly #holder: string;
  #token: number | undefined;
  #timer: Timer | undefined;
  #round: Promise<void> | undefined;
  #isStopped = false;

  constructor(deps: LeasedJobDeps<S>, job: Job<S>) {
    this.#deps = deps;
    this.#job = job;
    this.#holder = deps.random.bytes(8).toString('hex');
  }

  /** The first round begins at once. */
  start(): void {
    if (this.#isStopped) return;
    void this.run().then(() => {
      if (this.#isStopped) return;
      this.#timer = this.#deps.clock.setTimer(this.#job.everyMs, () => this.start());
    });
  }

  /** Waits for the round that runs, and lets others have the lease. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#round;
    if (this.#token === undefined) return;
    const { store, log } = this.#deps;
    const { name } = this.#job;
    await store
      .transact((tx) => tx.leases.release([name], this.#holder))
      .catch((err) => log.warn({ err, job: name }, 'a lease was not released; it runs out by itself'));
  }

  /** One round, or the one that runs; it never rejects. */
  run(): Promise<void> {
    this.#round ??= this.#runOnce().finally(() => {
      this.#round = undefined;
    });
    return this.#round;
  }

  async #runOnce(): Promise<void> {
    const { store, clock, log, fence } = this.#deps;
    const { name, everyMs, work } = this.#job;
    try {
      const ttlMs = Math.max(MIN_LEASE_MS, 3 * everyMs);
      const [lease] = await store.transact((tx) => tx.leases.claim([name], this.#holder, clock.now(), ttlMs));
      this.#token = lease?.token;
      if (lease !== undefined) await work(fence(store, lease));
    } catch (err) {
      if (err instanceof LeaseLost) return log.warn({ job: name }, LOST);
      log.error({ err, job: name }, 'a round of a job failed; it will be retried');
    }
  }
}
