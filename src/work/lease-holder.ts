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

/** Claims a lease periodically, and renews it while it is held. */
export class LeaseHolder {
  readonly #deps: LeaseDeps;
  readonly #name: string;
  readonly #holder: string;
  readonly #changed: (lease: LeaseRecord | null) => void;
  #lease: LeaseRecord | null = null;
  /** What `changed` was last called with. */
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

  /** Settles with the claim that is under way. */
  get claimed(): Promise<void> {
    return this.#claiming ?? Promise.resolve();
  }

  start(): void {
    this.#claiming = this.#claim();
  }

  /** Stops claiming. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#claiming;
  }

  /** Releases the lease, so that others get it at once. Call it after {@link stop}. */
  async release(): Promise<void> {
    const { store, log } = this.#deps;
    if (this.#lease === null) return;
    this.#lease = null;
    await store
      .transact((tx) => tx.leases.release(this.#name, this.#holder))
      .catch((error) =>
        log.warn({ err: error, lease: this.#name }, 'the lease could not be released; it expires by itself'),
      );
  }

  /** A write was rejected because another process holds the lease. The next periodic claim tries to get it again. */
  lost(): void {
    this.#lease = null;
    this.#report(null);
  }

  async #claim(): Promise<void> {
    const { store, clock, log } = this.#deps;
    const now = clock.now();
    // The lease expired while this process was paused: work under it ends and starts again with the next claim.
    if (!this.isHeld) this.#report(null);
    try {
      this.#lease = await store.transact((tx) => tx.leases.claim(this.#name, this.#holder, now, TTL_MS));
      if (this.#isStoreDown) log.info({ lease: this.#name }, 'the store answers again');
      this.#isStoreDown = false;
    } catch (error) {
      // A held lease stays held until it expires.
      if (!this.#isStoreDown) log.error({ err: error, lease: this.#name }, 'the store does not answer');
      this.#isStoreDown = true;
    }
    if (this.#isStopped) return;
    this.#timer = clock.setTimer(RENEW_MS, () => {
      this.#claiming = this.#claim();
    });
    // Another process held it meanwhile: decisions under the old token are void.
    if (this.#lease?.token !== this.#reported?.token) this.#report(null);
    this.#report(this.isHeld ? this.#lease : null);
  }

  #report(lease: LeaseRecord | null): void {
    if ((lease === null) === (this.#reported === null)) return;
    this.#reported = lease;
    this.#changed(lease);
  }
}
