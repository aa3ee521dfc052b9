import type { Clock, Timer } from '../ports/clock.ts';
import type { Log } from '../ports/log.ts';
import type { LeaseRecord, LeaseTransaction, LeasingStore } from './lease.ts';
import { SHARED_LEASE } from './lease-time.ts';

/** Each process holds one seat, so that the processes can count each other. */
const SEATS: readonly string[] = Array.from({ length: 16 }, (_, number) => `server:${number}`);

interface SharedDeps<Tx extends LeaseTransaction> {
  store: LeasingStore<Tx>;
  clock: Clock;
  log: Log;
}

/** The work that a process does under the leases that it holds. */
export interface SharedWork<Tx> {
  /** The names of the leases to share. */
  names: readonly string[];
  holder: string;
  /** Starts the work of a lease that was won. */
  begin(lease: LeaseRecord): void;
  /** Ends the work of a lease that was lost: another process may hold it now. */
  end(name: string): void;
  /** Starts no more work under the lease and settles once running work has ended. Then another process gets it. */
  drain(name: string): Promise<void>;
  /** Notifies the other processes to balance now: see {@link SharedLeases.balance}. */
  notify(tx: Tx): Promise<void>;
}

/**
 * Shares leases evenly among the running processes. It claims free leases up to this process's share, renews them, and
 * hands over the surplus. Each round is one transaction.
 */
export class SharedLeases<Tx extends LeaseTransaction> {
  readonly #deps: SharedDeps<Tx>;
  readonly #work: SharedWork<Tx>;
  readonly #held = new Map<string, LeaseRecord>();
  /** Leases that are being handed over; true: no work runs under it any more. */
  readonly #leaving = new Map<string, boolean>();
  readonly #drains = new Map<string, Promise<void>>();
  /** Since when leases beyond this process's share stay free, among the same processes. */
  #leftSince = Number.POSITIVE_INFINITY;
  #seated = '';
  #timer: Timer | undefined;
  #claiming: Promise<void> | undefined;
  #isDue = false;
  #isStopped = false;
  #isStoreDown = false;

  constructor(deps: SharedDeps<Tx>, work: SharedWork<Tx>) {
    this.#deps = deps;
    this.#work = work;
  }

  isHeld(name: string): boolean {
    const lease = this.#held.get(name);
    return lease !== undefined && this.#deps.clock.now() < lease.until;
  }

  /** Settles when the current claim has ended. */
  get claimed(): Promise<void> {
    return this.#claiming ?? Promise.resolve();
  }

  /** Claims and hands over leases now, and again at intervals. */
  balance(): void {
    if (this.#isStopped) return;
    this.#isDue = true;
    this.#claiming ??= this.#claimWhileDue();
  }

  /** A write was rejected because another process holds the lease. A later round may get it again. */
  lost(name: string): void {
    if (this.#held.has(name)) this.#end(name);
  }

  /** Stops claiming, and leaves the shares of this process to the others. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#timer?.cancel();
    await this.#claiming;
    await this.release(SEATS);
  }

  /** Releases leases, so that others get them at once. Call it after {@link stop}, when their work has ended. */
  async release(names: readonly string[]): Promise<void> {
    await Promise.all(names.map((name) => this.#drains.get(name)));
    for (const name of names) this.#held.delete(name);
    const { store, log } = this.#deps;
    await store
      .transact((tx) => this.#release(tx, names))
      .catch((err) => log.warn({ err, names }, 'leases could not be released; they expire by themselves'));
  }

  async #claimWhileDue(): Promise<void> {
    while (this.#isDue && !this.#isStopped) {
      this.#isDue = false;
      this.#timer?.cancel();
      await this.#claim();
    }
    this.#claiming = undefined;
    if (!this.#isStopped) this.#timer = this.#deps.clock.setTimer(SHARED_LEASE.renewMs, () => this.balance());
  }

  async #claim(): Promise<void> {
    const { store, clock, log } = this.#deps;
    const now = clock.now();
    // The leases expired while this process was paused: their work ends, and starts again if this claim wins them.
    this.#endExpired();
    const drained = [...this.#leaving].filter(([, isDrained]) => isDrained).map(([name]) => name);
    try {
      const { won, wanted, surplus } = await store.transact((tx) => this.#divide(tx, drained, now));
      if (this.#isStoreDown) log.info({}, 'the store answers again');
      this.#isStoreDown = false;
      for (const name of drained) this.#forget(name);
      this.#take(won);
      // Another process claimed some of the leases first, and others may still be free.
      if (won.length < wanted.length) this.#isDue = true;
      if (!this.#isStopped) for (const name of surplus) this.#handOver(name);
    } catch (err) {
      // Leases stay held until they expire.
      if (!this.#isStoreDown) log.error({ err }, 'the store does not answer');
      this.#isStoreDown = true;
      this.#endExpired();
    }
  }

  async #divide(tx: Tx, drained: readonly string[], now: number) {
    const { names, holder } = this.#work;
    if (drained.length > 0) await this.#release(tx, drained);
    const taken = await tx.leases.taken([...names, ...SEATS], holder, now);
    const seated = taken.flatMap((lease) => (SEATS.includes(lease.name) ? lease.holder : [])).sort();
    if (this.#seated !== seated.join()) this.#leftSince = Number.POSITIVE_INFINITY;
    this.#seated = seated.join();
    // The other processes do not have the names of those leases.
    const takesAll = now - this.#leftSince >= SHARED_LEASE.ttlMs;
    const leaving = new Set(this.#leaving.keys());
    const { wanted, surplus, left } = divide(names, taken, { holder, leaving, takesAll });
    if (left > 0) this.#leftSince = Math.min(this.#leftSince, now);
    else if (!takesAll) this.#leftSince = Number.POSITIVE_INFINITY;
    return { won: await tx.leases.claim(wanted, holder, now, SHARED_LEASE.ttlMs), wanted, surplus };
  }

  async #release(tx: Tx, names: readonly string[]): Promise<void> {
    await tx.leases.release(names, this.#work.holder);
    await this.#work.notify(tx);
  }

  /**
   * Ends the work of leases that were not renewed, or were renewed with a new token. Another process held the latter in
   * between, so decisions made before are void.
   */
  #take(claimed: readonly LeaseRecord[]): void {
    const won = new Map(claimed.map((lease) => [lease.name, lease]));
    for (const [name, { token }] of this.#held) if (won.get(name)?.token !== token) this.#end(name);
    for (const name of this.#work.names) {
      const lease = won.get(name);
      if (lease === undefined) continue;
      const isNew = !this.#held.has(name);
      this.#held.set(name, lease);
      if (isNew && !this.#isStopped) this.#work.begin(lease);
    }
  }

  #handOver(name: string): void {
    if (this.#leaving.has(name)) return;
    const lease = this.#held.get(name);
    this.#leaving.set(name, false);
    const drain = this.#work.drain(name).then(() => {
      this.#drains.delete(name);
      // The lease may have been lost in the meantime.
      if (this.#held.get(name)?.token !== lease?.token) return;
      this.#leaving.set(name, true);
      this.balance();
    });
    this.#drains.set(name, drain);
  }

  #endExpired(): void {
    const now = this.#deps.clock.now();
    for (const [name, { until }] of this.#held) if (until <= now) this.#end(name);
  }

  #end(name: string): void {
    this.#forget(name);
    this.#work.end(name);
  }

  #forget(name: string): void {
    this.#held.delete(name);
    this.#leaving.delete(name);
  }
}

/**
 * Decides which leases a process claims or renews: an even share, or all that are free, and a seat. `taken`: the leases
 * that are held, and the expired ones of `holder`. `leaving`: leases that it already hands over. `surplus`: those to hand
 * over. `left`: how many are free for other processes.
 */
export function divide(
  names: readonly string[],
  taken: readonly Pick<LeaseRecord, 'name' | 'holder'>[],
  { holder, leaving, takesAll }: { holder: string; leaving: ReadonlySet<string>; takesAll: boolean },
): { wanted: string[]; surplus: string[]; left: number } {
  const holders = new Map(taken.map((lease) => [lease.name, lease.holder]));
  const isMine = (name: string) => holders.get(name) === holder;
  const isFree = (name: string) => !holders.has(name);
  const processes = [...new Set([...SEATS.flatMap((name) => holders.get(name) ?? []), holder])];
  const hasOneMore = processes.indexOf(holder) < names.length % processes.length;
  const evenShare = Math.floor(names.length / processes.length) + Number(hasOneMore);
  const share = takesAll ? names.length : evenShare;
  const mine = names.filter(isMine);
  const free = names.filter(isFree);
  const claimed = free.slice(0, Math.max(0, share - mine.length));
  const seat = SEATS.find(isMine) ?? SEATS.find(isFree);
  // Leases that are being handed over come last, so that they are the first in the surplus.
  const inOrder = mine.toSorted((a, b) => Number(leaving.has(a)) - Number(leaving.has(b)));
  return {
    wanted: [...mine, ...claimed, ...(seat === undefined ? [] : [seat])].toSorted(),
    surplus: inOrder.slice(share),
    left: free.length - claimed.length,
  };
}
