import type { Clock, Random, Timer } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import { LeaseLost, type LeaseRecord, type LeasingStore } from './lease.ts';
import { jobLeaseMs } from './lease-time.ts';

export interface Job<S> {
  /** Name of the lease, also logged. */
  name: string;
  everyMs: number;
  /** Runs one round. It must write through `store`, which rejects writes once another process has the lease. */
  work(store: S): Promise<void>;
}

export interface LeasedJobDeps<S> {
  store: S;
  clock: Clock;
  random: Pick<Random, 'bytes'>;
  log: Log;
  /** Wraps the store so that it writes only while the lease is held. */
  fence: (store: S, lease: LeaseRecord) => S;
}

const LOST = 'a job run outlasted its lease: another process has taken over';

/**
 * Repeats a job in the process that holds its lease. A round that outlasts the lease may overlap with a round in
 * another process; its later writes are then rejected.
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

  /** Starts the first round at once. */
  start(): void {
    if (this.#isStopped) return;
    void this.run().then(() => {
      if (this.#isStopped) return;
      this.#timer = this.#deps.clock.setTimer(this.#job.everyMs, () => this.start());
    });
  }

  /** Waits for the current round, then releases the lease. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#round;
    if (this.#token === undefined) return;
    const { store, log } = this.#deps;
    const { name } = this.#job;
    await store
      .transact((tx) => tx.leases.release([name], this.#holder))
      .catch((err) => log.warn({ err, job: name }, 'a lease was not released; it expires by itself'));
  }

  /** Starts a round, or joins the current one. Never rejects. */
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
      const [lease] = await store.transact((tx) =>
        tx.leases.claim([name], this.#holder, clock.now(), jobLeaseMs(everyMs)),
      );
      this.#token = lease?.token;
      if (lease !== undefined) await work(fence(store, lease));
    } catch (err) {
      if (err instanceof LeaseLost) return log.warn({ job: name }, LOST);
      log.error({ err, job: name }, 'a job run failed; it will be retried');
    }
  }
}
