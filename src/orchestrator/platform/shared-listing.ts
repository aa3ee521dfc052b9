import type { Clock, Timer } from '../../ports/clock.ts';
import { inSlices } from '../../ports/in-slices.ts';
import type { Log } from '../../ports/log.ts';
import type { CopyOfResource, HostAnswers, Leftover, Listing, OwnerRef } from '../model/platform-driver.ts';
import type { InstanceRecord } from '../model/records.ts';
import type { Telemetry } from '../model/telemetry.ts';
import { observe } from './call-platform.ts';
import type { ReconcileOptions } from './options.ts';

/** The hosts behind an answer. */
export interface Hosts {
  /** `all`: the answer covers every host that the platform ever had. */
  answered: ReadonlySet<string> | 'all';
  silent: ReadonlySet<string>;
}

export function toHosts(hosts: HostAnswers | undefined): Hosts {
  if (hosts === undefined) return { answered: 'all', silent: new Set() };
  return { answered: new Set(hosts.answered), silent: new Set(hosts.silent) };
}

/**
 * Whether a machine that the answer does not show may still exist, since the host that last had it has not answered.
 */
export function isUnseen({ answered, silent }: Hosts, { host }: Pick<InstanceRecord, 'host'>): boolean {
  if (answered === 'all') return false;
  return host === null ? silent.size > 0 : !answered.has(host);
}

/** One listing of a platform. */
export interface Listed<T> {
  /** Whether absence from the listing proves that a resource is missing. A listed resource exists either way. */
  isTrusted: boolean;
  /** Whether the listing is trusted and every host answered. */
  isComplete: boolean;
  copies: readonly CopyOfResource[];
  leftovers: readonly Leftover[];
  items: ReadonlyMap<OwnerRef, T>;
  /** Milliseconds since the epoch. */
  begunAt: number;
  hosts: Hosts;
}

interface Deps {
  clock: Clock;
  log: Log;
  options: ReconcileOptions;
  telemetry?: Telemetry;
}

/** Decides whether a listing is trusted, and reports the result to the platform's health. */
export type Judge<T> = (listing: Listing<T>, begunAt: number) => Promise<boolean>;

/**
 * The platform's listings of one kind of resource. They run one after another with pauses, and all callers waiting for
 * a listing share it: a hundred deletes cost as many listings as one.
 */
export class SharedListing<T extends { ref: OwnerRef }> {
  /** Machines in trusted listings with silent hosts. */
  readonly partialListings = new PartialListings();
  readonly #deps: Deps;
  readonly #list: () => Promise<Listing<T>>;
  readonly #judge: Judge<T>;
  readonly #mayBeEmpty: () => Promise<boolean>;
  #next: Promise<Listed<T> | null> | undefined;
  #running: Promise<unknown> = Promise.resolve();
  #pauseEndsAt = Number.NEGATIVE_INFINITY;
  #pauseMs = 0;
  #endPause: (() => void) | undefined;
  #isStopped = false;

  /** @param mayBeEmpty whether an empty listing that has just ended proves an absence */
  constructor(
    deps: Deps,
    list: () => Promise<Listing<T>>,
    judge: Judge<T>,
    mayBeEmpty: () => Promise<boolean> = async () => true,
  ) {
    this.#deps = deps;
    this.#list = list;
    this.#judge = judge;
    this.#mayBeEmpty = mayBeEmpty;
  }

  /** Returns a listing that begins after this call. Null if the platform does not list. Never rejects. */
  observe(): Promise<Listed<T> | null> {
    this.#next ??= this.#listNext();
    return this.#next;
  }

  /**
   * Why a `gone` of `get` is not proved. Undefined if it is: a trusted listing that began later does not contain `ref`
   * either. Never rejects.
   */
  async confirmAbsent(ref: OwnerRef): Promise<string | undefined> {
    const listed = await this.observe();
    if (listed === null || !listed.isTrusted || (listed.items.size === 0 && !(await this.#mayBeEmpty())))
      return 'the platform reports it gone, but its listing is not trusted now';
    return listed.items.has(ref) ? 'the platform reports it gone, but still lists it' : undefined;
  }

  /**
   * If hosts are silent, lists the machine before its removal. Afterwards a removed machine could not be distinguished
   * from one that moved to a silent host. Never rejects.
   */
  async listBeforeRemoval(ref: OwnerRef): Promise<void> {
    if (this.partialListings.isPartial && !this.partialListings.isRemovalSent(ref)) await this.observe();
  }

  /** Ends all waits with null and begins no further listing. */
  stop(): void {
    this.#isStopped = true;
    this.#endPause?.();
  }

  async #listNext(): Promise<Listed<T> | null> {
    await this.#running.catch(() => undefined);
    await this.#pause();
    // The listing begins here. Later callers must wait for the next one.
    this.#next = undefined;
    if (this.#isStopped) return null;
    const running = this.#listNow();
    this.#running = running;
    return running;
  }

  async #listNow(): Promise<Listed<T> | null> {
    const { clock, log, options } = this.#deps;
    const begunAt = clock.now();
    const listing = await observe(this.#deps, this.#list, 'list');
    // The pause is at least as long as the listing took, so a slow platform is not busy with listings alone. Time
    // beyond the call timeout does not count: this process was suspended.
    const tookMs = Math.min(clock.now() - begunAt, options.callTimeoutMs);
    this.#pauseMs = Math.max(options.listPauseMs, tookMs);
    this.#pauseEndsAt = clock.now() + this.#pauseMs;
    try {
      const isTrusted = await this.#judge(listing, begunAt);
      if (!isTrusted) this.partialListings.forget();
      if (listing.answer === 'unknown') return null;
      const items = new Map<OwnerRef, T>();
      for await (const slice of inSlices(listing.items)) for (const item of slice) items.set(item.ref, item);
      const hosts = toHosts(listing.hosts);
      if (isTrusted) this.partialListings.note(items.keys(), hosts);
      const { copies = [], leftovers = [] } = listing;
      const isComplete = isTrusted && hosts.silent.size === 0;
      return { items, begunAt, hosts, isTrusted, isComplete, copies, leftovers };
    } catch (error) {
      log.error({ err: error }, 'a listing could not be compared with the database: it is ignored');
      return null;
    }
  }

  async #pause(): Promise<void> {
    const { clock } = this.#deps;
    // The limit prevents a longer pause after the clock was set back.
    const waitMs = Math.min(this.#pauseEndsAt - clock.now(), this.#pauseMs);
    if (waitMs <= 0 || this.#isStopped) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer: Timer = clock.setTimer(waitMs, resolve);
    this.#endPause = () => {
      timer.cancel();
      resolve();
    };
    await promise;
    this.#endPause = undefined;
  }
}

/** A sent removal is dropped after this many listings: about a day. */
const KEPT_LISTINGS = 10_000;

/**
 * The machines that the last listing showed while some hosts were silent. Each was on a host that answered. If a later
 * listing omits a machine, it may have moved to a silent host that answered for a moment, unless Berth has sent its
 * removal since.
 */
class PartialListings {
  readonly #silent = new Map<OwnerRef, ReadonlySet<string>>();
  /** For each machine, the number of the last listing before its removal was sent. */
  readonly #removalsSent = new Map<OwnerRef, number>();
  #listings = 0;
  #silentNow: ReadonlySet<string> = new Set();

  /** Records an accepted listing. `refs`: the machines that it shows. */
  note(refs: Iterable<OwnerRef>, { silent }: Pick<Hosts, 'silent'>): void {
    const shown = new Set(refs);
    this.#listings++;
    // Drops old removals: another server has ended those instances.
    for (const [ref, sentAt] of this.#removalsSent)
      if (this.#listings - sentAt > KEPT_LISTINGS) this.#removalsSent.delete(ref);
    for (const [ref, before] of this.#silent) {
      const still = new Set([...before].filter((host) => silent.has(host)));
      const isKnown = shown.has(ref) || this.#removalsSent.has(ref);
      if (isKnown && still.size > 0) this.#silent.set(ref, still);
      else this.#silent.delete(ref);
    }
    if (silent.size > 0) for (const ref of shown) this.#silent.set(ref, silent);
    this.#silentNow = silent;
  }

  /**
   * Call it after a listing that is not trusted. A silent host may have been back meanwhile, and a machine may have
   * moved to it.
   */
  forget(): void {
    this.#silent.clear();
  }

  /** Whether any host was silent in the last listing. */
  get isPartial(): boolean {
    return this.#silentNow.size > 0;
  }

  /**
   * Whether another host showed the machine while all of `silent` were silent, so it cannot have moved to one of them.
   */
  has(ref: OwnerRef, silent: ReadonlySet<string>): boolean {
    const before = this.#silent.get(ref);
    return before !== undefined && [...silent].every((host) => before.has(host));
  }

  /** Records that a removal is sent now. Call the returned function if the removal was refused without effect. */
  removalSent(ref: OwnerRef): () => void {
    if (this.#removalsSent.has(ref)) return () => undefined;
    this.#removalsSent.set(ref, this.#listings);
    return () => void this.#removalsSent.delete(ref);
  }

  isRemovalSent(ref: OwnerRef): boolean {
    return this.#removalsSent.has(ref);
  }

  /** Records that the removal has ended. */
  removed(ref: OwnerRef): void {
    this.#removalsSent.delete(ref);
  }
}
