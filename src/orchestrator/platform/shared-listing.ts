import type { Clock, Timer } from '../../ports/clock.ts';
import { inSlices } from '../../ports/in-slices.ts';
import type { Log } from '../../ports/log.ts';
import type { CopyOfResource, Leftover, Listing, OwnerRef } from '../model/platform-driver.ts';
import type { Telemetry } from '../model/telemetry.ts';
import { type Hosts, SeenBeside, toHosts } from './asked-hosts.ts';
import { observe } from './call-platform.ts';
import type { ReconcileOptions } from './options.ts';

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
  readonly seenBeside = new SeenBeside();
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
   * Whether a `gone` of `get` is proved: a trusted listing that began later does not contain `ref` either. Never
   * rejects.
   */
  async confirmAbsent(ref: OwnerRef): Promise<{ isProved: true } | { isProved: false; reason: string }> {
    const listed = await this.observe();
    if (listed === null || !listed.isTrusted || (listed.items.size === 0 && !(await this.#mayBeEmpty())))
      return { isProved: false, reason: 'the platform reports it gone, but its listing is not trusted now' };
    return listed.items.has(ref)
      ? { isProved: false, reason: 'the platform reports it gone, but still lists it' }
      : { isProved: true };
  }

  /**
   * If hosts are silent, lists the machine before its removal. Afterwards a removed machine could not be distinguished
   * from one that moved to a silent host. Never rejects.
   */
  async seeBesideSilence(ref: OwnerRef): Promise<void> {
    if (this.seenBeside.isBesideSilence && !this.seenBeside.isRemovalSent(ref)) await this.observe();
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
      if (!isTrusted) this.seenBeside.forget();
      if (listing.answer === 'unknown') return null;
      const items = new Map<OwnerRef, T>();
      for await (const slice of inSlices(listing.items)) for (const item of slice) items.set(item.ref, item);
      const hosts = toHosts(listing.hosts);
      if (isTrusted) this.seenBeside.note(items.keys(), hosts);
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
