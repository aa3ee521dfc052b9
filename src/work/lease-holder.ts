import type { Clock, Timer } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type { LeaseRecord, LeasingStore } from './lease.ts';

const TTL_MS = 30_000;
const RENEW_MS = 10_000;

interface LeaseDeps {
  store: LeasingStore;
  clock: Clock;
  log: Log;
}

/** Asks for a lease again and again, and renews it while it is held. */
export class LeaseHolder {
  readonly #deps: LeaseDeps;
  readonly #name: string;
  readonly #holder: string;
  readonly #changed: (lease: LeaseRecord | null) => void;
  #lease: LeaseRecord | null = null;
  /** What was told last: a lease that was won, or null. */
  #reported: LeaseRecord | null = null;
  #timer: Timer | undefined;
  #claiming: Promise<void> | undefined;
  #isStopped = false;
  #isStoreDown = false;

  /** `changed` is called with the lease when it is won, and with null when it is lost. */
  constructor(
    deps: LeaseDeps,
    { name, holder, changed }: { name: string; holder: string; changed: (lease: LeaseRecord | null) => void },
  ) {
    this.#deps = deps;
    this.#name = name;
    this.#holder = holder;
    this.#changed = changed;
  }

  get isHeld(): boolean {
    return this.#lease !== null && this.#deps.clock.now() < this.#lease.until;
  }

  start(): void {
    this.#claiming = this.#claim();
  }

  /** Asks for it no more. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#claiming;
  }

  /** Lets others have it at once. After {@link stop}. */
  async release(): Promise<void> {
    const { store, log } = this.#deps;
    if (this.#lease === null) return;
    this.#lease = null;
    await store
      .transact((tx) => tx.leases.release(this.#name, this.#holder))
      .catch((error) => log.warn({ err: error, lease: this.#name }, 'the lease will run out instead'));
  }

  /** A write was refused since another process has it. It is asked for again in its time. */
  lost(): void {
    this.#lease = null;
    this.#report(null);
  }

  async #claim(): Promise<void> {
    const { store, clock, log } = this.#deps;
    const now = clock.now();
    // A process that stood still has let go what came due before it asked again: that begins anew.
    if (!this.isHeld) this.#report(null);
    try {
      this.#lease = await store.transact((tx) => tx.leases.claim(this.#name, this.#holder, now, TTL_MS));
      if (this.#isStoreDown) log.info({ lease: this.#name }, 'the store answers again');
      this.#isStoreDown = false;
    } catch (error) {
      // What is held is held until it runs out.
      if (!this.#isStoreDown) log.error({ err: error, lease: this.#name }, 'the store does not answer');
      this.#isStoreDown = true;
    }
    if (this.#isStopped) return;
    this.#timer = clock.setTimer(RENEW_MS, () => {
      this.#claiming = this.#claim();
    });
    // It was another process's meanwhile: what was decided under the old token is void.
    if (this.#lease?.token !== this.#reported?.token) this.#report(null);
    this.#report(this.isHeld ? this.#lease : null);
  }

  #report(lease: LeaseRecord | null): void {
    if ((lease === null) === (this.#reported === null)) return;
    this.#reported = lease;
    this.#changed(lease);
  }
}
