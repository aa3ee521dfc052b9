import type { Clock, Timer } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type { LeaseRecord, LeaseTransaction, LeasingStore } from './lease.ts';
import { RANGE_LEASE } from './lease-time.ts';

/** If two processes claim the same free ranges at once, the loser tries other ranges. */
const TRIES = 3;

interface RangeDeps<Tx extends LeaseTransaction> {
  store: LeasingStore<Tx>;
  clock: Clock;
  log: Log;
}

/** The work that a process does in the ranges that it holds. */
export interface RangeWork<Tx> {
  /** Name of the leases, such as `provider:provider-a`. */
  name: string;
  holder: string;
  /** Starts work in ranges whose leases were won. */
  begin(won: readonly { range: number; lease: LeaseRecord }[]): void;
  /** Ends work in ranges whose leases were lost: another process may hold them now. */
  end(ranges: readonly number[]): void;
  /** Starts no more work in the range and settles once running work has ended. Then another process gets the range. */
  drain(range: number): Promise<void>;
  /** Notifies the other processes to balance now: see {@link RangeLeases.balance}. */
  notify(tx: Tx): Promise<void>;
}

/**
 * Shares {@link RANGES} ranges of work evenly among the running processes. It claims free ranges up to this process's
 * share, renews them, and hands over the surplus. Each round is one transaction.
 */
export class RangeLeases<Tx extends LeaseTransaction> {
  readonly #deps: RangeDeps<Tx>;
  readonly #work: RangeWork<Tx>;
  readonly #names: ReturnType<typeof namesOf>;
  readonly #leases = new Map<number, LeaseRecord>();
  /** Ranges that are being handed over; true: no work runs in it any more. */
  readonly #leaving = new Map<number, boolean>();
  readonly #drains = new Set<Promise<void>>();
  #timer: Timer | undefined;
  #claiming: Promise<void> | undefined;
  #isDue = false;
  #isSeated = false;
  #isStopped = false;
  #isStoreDown = false;

  constructor(deps: RangeDeps<Tx>, work: RangeWork<Tx>) {
    this.#deps = deps;
    this.#work = work;
    this.#names = namesOf(work.name);
  }

  isHeld(range: number): boolean {
    const lease = this.#leases.get(range);
    return lease !== undefined && this.#deps.clock.now() < lease.until;
  }

  /** Settles when the current claim has ended. */
  get claimed(): Promise<void> {
    return this.#claiming ?? Promise.resolve();
  }

  start(): void {
    this.balance();
  }

  /** Claims and hands over ranges now. Called when a process joins or leaves. */
  balance(): void {
    if (this.#isStopped) return;
    this.#isDue = true;
    this.#claiming ??= this.#claimWhileDue();
  }

  /** A write was rejected because another process holds the range. A later round may get it again. */
  lost(range: number): void {
    if (!this.#leases.has(range)) return;
    this.#forget(range);
    this.#work.end([range]);
  }

  /** Stops claiming. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#claiming;
  }

  /** Releases all leases, so that others get them at once. Call it after {@link stop}, when no work runs any more. */
  async release(): Promise<void> {
    const { store, log } = this.#deps;
    const { name, holder } = this.#work;
    await Promise.all(this.#drains);
    if (!this.#isSeated) return;
    this.#leases.clear();
    await store
      .transact(async (tx) => {
        await tx.leases.release(this.#names.all, holder);
        await this.#work.notify(tx);
      })
      .catch((error) =>
        log.warn({ err: error, lease: name }, 'the leases could not be released; they expire by themselves'),
      );
  }

  async #claimWhileDue(): Promise<void> {
    while (this.#isDue && !this.#isStopped) {
      this.#isDue = false;
      this.#timer?.cancel();
      for (let tries = 0; tries < TRIES && !(await this.#claim()); tries++);
    }
    this.#claiming = undefined;
    if (!this.#isStopped) this.#timer = this.#deps.clock.setTimer(RANGE_LEASE.renewMs, () => this.balance());
  }

  /** False: another process claimed some of the ranges first, and others may still be free. */
  async #claim(): Promise<boolean> {
    const { store, clock, log } = this.#deps;
    const { name } = this.#work;
    const now = clock.now();
    // The leases expired while this process was paused: their work ends, and starts again if this claim wins them.
    this.#endRunOut();
    const drained = [...this.#leaving].filter(([, isDrained]) => isDrained).map(([range]) => range);
    try {
      const { won, wanted, surplus } = await store.transact((tx) => this.#divide(tx, drained, now));
      if (this.#isStoreDown) log.info({ lease: name }, 'the store answers again');
      this.#isStoreDown = false;
      this.#isSeated = true;
      for (const range of drained) this.#forget(range);
      this.#take(won);
      if (!this.#isStopped) for (const lease of surplus) this.#handOver(lease);
      return won.length === wanted;
    } catch (error) {
      // Leases stay held until they expire.
      if (!this.#isStoreDown) log.error({ err: error, lease: name }, 'the store does not answer');
      this.#isStoreDown = true;
      this.#endRunOut();
      return true;
    }
  }

  async #divide(tx: Tx, drained: readonly number[], now: number) {
    const { holder } = this.#work;
    if (drained.length > 0)
      await tx.leases.release(
        drained.map((range) => this.#names.ranges[range] ?? ''),
        holder,
      );
    const taken = await tx.leases.taken(this.#names.all, holder, now);
    const leaving = new Set(this.#leaving.keys());
    const { wanted, surplus, isNew, isAlone } = divide(this.#names, taken, { holder, leaving });
    const won = await tx.leases.claim(wanted, holder, now, RANGE_LEASE.ttlMs);
    if (!isAlone && (isNew || drained.length > 0)) await this.#work.notify(tx);
    return { won, wanted: wanted.length, surplus };
  }

  /**
   * Ends ranges that were not renewed, or were renewed with a new token. Another process held the latter in between,
   * so decisions made before are void.
   */
  #take(claimed: readonly LeaseRecord[]): void {
    const leases = new Map(claimed.map((lease) => [this.#names.ranges.indexOf(lease.name), lease]));
    leases.delete(-1);
    const ended = [...this.#leases].filter(([range, { token }]) => leases.get(range)?.token !== token);
    for (const [range] of ended) this.#forget(range);
    const begun = [...leases].filter(([range]) => !this.#leases.has(range));
    for (const [range, lease] of leases) this.#leases.set(range, lease);
    if (this.#isStopped) return;
    if (ended.length > 0) this.#work.end(ended.map(([range]) => range));
    if (begun.length > 0) this.#work.begin(begun.map(([range, lease]) => ({ range, lease })));
  }

  #handOver(range: number): void {
    if (this.#leaving.has(range)) return;
    const lease = this.#leases.get(range);
    this.#leaving.set(range, false);
    const drain = this.#work.drain(range).then(() => {
      this.#drains.delete(drain);
      // The lease may have been lost in the meantime.
      if (this.#leases.get(range)?.token !== lease?.token) return;
      this.#leaving.set(range, true);
      this.balance();
    });
    this.#drains.add(drain);
  }

  #endRunOut(): void {
    const now = this.#deps.clock.now();
    const ended = [...this.#leases].filter(([, { until }]) => until <= now).map(([range]) => range);
    for (const range of ended) this.#forget(range);
    if (ended.length > 0) this.#work.end(ended);
  }

  #forget(range: number): void {
    this.#leases.delete(range);
    this.#leaving.delete(range);
  }
}

/** Number of ranges per name, and so the most processes that can share the work. */
export const RANGES = 16;

/** Names of leases. Each process holds one seat, so that the processes can count each other. */
export interface RangeNames {
  ranges: readonly string[];
  seats: readonly string[];
  all: readonly string[];
}

export function namesOf(name: string): RangeNames {
  const numbers = Array.from({ length: RANGES }, (_, number) => number);
  const ranges = numbers.map((number) => `${name}:${number}`);
  const seats = numbers.map((number) => `${name}:server:${number}`);
  return { ranges, seats, all: [...ranges, ...seats] };
}

/** The range of an id: its last hexadecimal digit, or 0 if the id ends in another character. */
export function rangeOf(id: string): number {
  const digit = Number.parseInt(id.at(-1) ?? '', 16);
  return Number.isNaN(digit) ? 0 : digit;
}

export interface Division {
  /** Names of leases to claim or renew. */
  wanted: string[];
  /** Ranges of this process to hand over to others. */
  surplus: number[];
  /** This process holds no seat yet, so the others do not count it. */
  isNew: boolean;
  isAlone: boolean;
}

/**
 * Decides which leases a process should hold: an even share of the ranges, rounded up. `taken`: the leases that are
 * held, and the expired ones of `holder`. `leaving`: ranges that it already hands over.
 */
export function divide(
  { ranges, seats }: RangeNames,
  taken: readonly Pick<LeaseRecord, 'name' | 'holder'>[],
  { holder, leaving }: { holder: string; leaving: ReadonlySet<number> },
): Division {
  const holders = new Map(taken.map((lease) => [lease.name, lease.holder]));
  const isMine = (name: string) => holders.get(name) === holder;
  const isFree = (name: string) => !holders.has(name);
  const seated = seats.flatMap((name) => holders.get(name) ?? []);
  const processes = new Set([holder, ...seated]).size;
  const share = Math.ceil(ranges.length / processes);
  const numbers = [...ranges.keys()];
  const mine = numbers.filter((range) => isMine(ranges[range] ?? ''));
  // Ranges that are being handed over come last, so that they are the first in the surplus.
  const kept = mine.filter((range) => !leaving.has(range));
  const left = mine.filter((range) => leaving.has(range));
  const free = ranges.filter(isFree).slice(0, Math.max(0, share - mine.length));
  const seat = seats.find(isMine) ?? seats.find(isFree);
  return {
    wanted: [...ranges.filter(isMine), ...free, ...(seat === undefined ? [] : [seat])].toSorted(),
    surplus: [...kept, ...left].slice(share),
    isNew: !seats.some(isMine),
    isAlone: processes === 1,
  };
}
