import type { Clock, Timer } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import { leaseCheckMs } from './lease-time.ts';

/** The work rows of a store. One process at a time claims a row, with a lease on it. */
export interface WorkStore<Kind, Lease> {
  /** Claims up to `limit` rows that are due and not leased, in one statement. */
  claimWork(claim: {
    owner: string;
    now: number;
    leaseUntil: number;
    limit: number;
    resourceKind: Kind;
  }): Promise<Lease[]>;
  /** Time at which the next row can be claimed; null: no open work. */
  nextWorkAt(): Promise<number | null>;
  /** Whether other processes claim work from this store too. */
  readonly isShared: boolean;
}

interface WorkQueueDeps<Kind, Lease> {
  store: WorkStore<Kind, Lease>;
  clock: Clock;
  log: Log;
  /** Unique name of this process. */
  owner: string;
  kinds: readonly Kind[];
  leaseMs: number;
  /** For each kind. */
  maxConcurrentSteps: number;
  /** While true, nothing is claimed. Call `wake` when it becomes false. */
  isFrozen: () => boolean;
  /** Whether this process's clock is close enough to the store's for leases to be safe. */
  isClockInSync: () => boolean;
  /** Runs the step of a claimed row; never rejects. */
  run: (lease: Lease) => Promise<void>;
}

const LONGEST_NAP_MS = 60_000;
const AFTER_STORE_FAILURE_MS = 1_000;
/** While every slot is taken. A step that ends wakes the queue; a step that becomes slow does not. */
const NAP_WHILE_FULL_MS = 100;
/** While due work is locked by another process, or the clock is out of sync. */
const NAP_WHILE_BLOCKED_MS = 100;

/**
 * Claims due work, runs its steps, and sleeps until the next row is due. A step that hangs delays other work only
 * briefly: see {@link Slots}.
 */
export class WorkQueue<Kind, Lease> {
  readonly #deps: WorkQueueDeps<Kind, Lease>;
  readonly #running = new Set<Promise<void>>();
  readonly #slots: Slots<Kind>;
  readonly #throttles: ReadonlyMap<Kind, Throttle>;
  #timer: Timer | undefined;
  #pumping: Promise<void> | undefined;
  #isWakeRequested = false;
  #isStarted = false;
  #isStopped = false;
  #isStoreDown = false;

  constructor(deps: WorkQueueDeps<Kind, Lease>) {
    this.#deps = deps;
    this.#slots = new Slots(deps.clock, deps.maxConcurrentSteps);
    this.#throttles = new Map(deps.kinds.map((kind) => [kind, new Throttle(deps.clock)]));
  }

  /** Starts claiming. */
  start(): void {
    this.#isStarted = true;
    this.wake();
  }

  /** Checks for work soon. Cheap to call often. */
  wake(): void {
    if (this.#isStopped || !this.#isStarted || this.#deps.isFrozen()) return;
    this.#isWakeRequested = true;
    this.#pumping ??= this.#pump();
  }

  /** Limits the rate at which waiting work starts after an outage. */
  throttle(): void {
    for (const throttle of this.#throttles.values()) throttle.begin();
  }

  /** Stops claiming and waits for the running steps. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#pumping;
    await Promise.all(this.#running);
  }

  async #pump(): Promise<void> {
    const { store, clock, log, kinds, isFrozen, isClockInSync } = this.#deps;
    try {
      while (this.#isWakeRequested && !this.#isStopped && !isFrozen()) {
        this.#isWakeRequested = false;
        if (!isClockInSync()) return this.#sleep(NAP_WHILE_BLOCKED_MS);
        for (const kind of kinds) await this.#claim(kind);
      }
      const next = await store.nextWorkAt();
      if (this.#isStoreDown) log.info({}, 'the store answers again');
      this.#isStoreDown = false;
      const nap = next === null ? LONGEST_NAP_MS : next - clock.now();
      const blockedMs = nap <= 0 ? NAP_WHILE_BLOCKED_MS : 0;
      const paces = [...this.#throttles.values()].map(({ pauseMs }) => pauseMs);
      this.#sleep(Math.max(nap, this.#isFull() ? NAP_WHILE_FULL_MS : blockedMs, ...paces));
    } catch (error) {
      if (!this.#isStoreDown) log.error({ err: error }, 'the store does not answer; durable work waits');
      this.#isStoreDown = true;
      this.#sleep(AFTER_STORE_FAILURE_MS);
    } finally {
      this.#pumping = undefined;
    }
    if (this.#isWakeRequested) this.wake();
  }

  async #claim(resourceKind: Kind): Promise<void> {
    const { store, clock, owner, leaseMs } = this.#deps;
    const throttle = this.#throttles.get(resourceKind);
    const limit = Math.min(this.#slots.free(resourceKind), throttle?.allowance ?? Number.POSITIVE_INFINITY);
    if (limit === 0) return;
    const now = clock.now();
    const leases = await store.claimWork({ owner, now, leaseUntil: now + leaseMs, limit, resourceKind });
    throttle?.take(leases.length);
    for (const lease of leases) this.#run(resourceKind, lease);
  }

  #isFull(): boolean {
    return this.#deps.kinds.some((kind) => this.#slots.free(kind) === 0);
  }

  #run(kind: Kind, lease: Lease): void {
    const releaseSlot = this.#slots.take(kind);
    const step = this.#deps.run(lease).finally(() => {
      releaseSlot();
      this.#running.delete(step);
      this.wake();
    });
    this.#running.add(step);
  }

  #sleep(ms: number): void {
    this.#timer?.cancel();
    if (this.#isStopped) return;
    const nap = Math.min(Math.max(ms, 0), this.#longestNapMs());
    this.#timer = this.#deps.clock.setTimer(nap, () => this.wake());
  }

  /**
   * Work that another process adds does not wake this queue. If that process dies, this limit finds its work within
   * one lease.
   */
  #longestNapMs(): number {
    const { store, leaseMs } = this.#deps;
    return store.isShared ? Math.min(LONGEST_NAP_MS, leaseCheckMs(leaseMs)) : LONGEST_NAP_MS;
  }
}

/** A longer step is waiting for the platform. It costs almost nothing, so it no longer takes a slot. */
const SLOW_AFTER_MS = 2_000;
/** Most steps of each kind at once, including slow ones: limits the memory of the process. */
const HARD_CAP = 1_024;

interface Step<Kind> {
  kind: Kind;
  begunAt: number;
}

/**
 * Limits the steps that run at once, per resource kind. Calls that hang delay other work only until they count as
 * slow, however many hang.
 */
export class Slots<Kind> {
  readonly #clock: Clock;
  readonly #perKind: number;
  readonly #steps = new Set<Step<Kind>>();

  constructor(clock: Clock, perKind: number) {
    this.#clock = clock;
    this.#perKind = perKind;
  }

  /** Takes a slot. The returned function frees it. */
  take(kind: Kind): () => void {
    const step = { kind, begunAt: this.#clock.now() };
    this.#steps.add(step);
    return () => void this.#steps.delete(step);
  }

  free(kind: Kind): number {
    const steps = [...this.#steps].filter((step) => step.kind === kind);
    const quick = steps.filter((step) => !this.#isSlow(step));
    return Math.max(0, Math.min(this.#perKind - quick.length, HARD_CAP - steps.length));
  }

  #isSlow({ begunAt }: Step<Kind>): boolean {
    return this.#clock.now() - begunAt >= SLOW_AFTER_MS;
  }
}

const DURATION_MS = 30_000;
const BURST = 8;
const PER_SECOND = 20;

/**
 * Limits the rate of steps after an outage, when all waiting work is due at once: for half a minute only some steps
 * start per second, so that the platform is not overloaded.
 */
export class Throttle {
  readonly #clock: Clock;
  #begunAt = Number.NEGATIVE_INFINITY;
  #taken = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin(): void {
    this.#begunAt = this.#clock.now();
    this.#taken = 0;
  }

  /** How many steps may start now. */
  get allowance(): number {
    const pastMs = this.#clock.now() - this.#begunAt;
    if (pastMs < 0 || pastMs >= DURATION_MS) return Number.POSITIVE_INFINITY;
    return Math.max(0, Math.floor(BURST + (pastMs * PER_SECOND) / 1000) - this.#taken);
  }

  /** Wait before the next step may start, in milliseconds. */
  get pauseMs(): number {
    return this.allowance > 0 ? 0 : 1000 / PER_SECOND;
  }

  take(count: number): void {
    this.#taken += count;
  }
}
