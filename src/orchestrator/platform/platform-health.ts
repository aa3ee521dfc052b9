import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Store } from '../model/store.ts';

/** `down`: it does not answer, or refuses us. `suspect`: it answers, and what it says cannot be believed. */
export interface PlatformProblem {
  kind: 'down' | 'suspect';
  problem: string;
}

const alarms: Record<PlatformProblem['kind'], string> = {
  down: 'the platform does not answer: nothing is sold and no state is changed until it does',
  suspect:
    'the platform lacks too much of what it should have: nothing is sold and no state is changed until it lists it again, ' +
    'or until `berth losses accept` says that the losses are real; first look whether its key and project are still the right ones',
};

/**
 * Whether the platform can be believed. While it cannot, reads go on from the store, every offer is unavailable and
 * nothing terminal is decided (settled). How long that has been outlives the process, so that the deadlines of what
 * could not be done meanwhile are moved by as much.
 */
export class PlatformHealth {
  readonly #deps: { store: Store; clock: Clock; log: Log };
  readonly #listeners = new Set<(recovery: { isOutage: boolean }) => void>();
  /** A process begins in doubt: what it has not seen it cannot decide on. */
  #current: PlatformProblem | undefined = { kind: 'down', problem: 'it has not been listed since the start' };
  #hasLogged = false;
  #isMarked = false;
  /** What the last refused order was about, if none was accepted since. */
  #refusedResource: string | undefined;
  #refusedAt = Number.NEGATIVE_INFINITY;

  constructor(deps: { store: Store; clock: Clock; log: Log }) {
    this.#deps = deps;
  }

  get isUp(): boolean {
    return this.#current === undefined;
  }

  get isSuspect(): boolean {
    return this.#current?.kind === 'suspect';
  }

  /** Calls `listener` whenever the platform is believed again, or at last. Returns the way to end that. */
  onRecovery(listener: (recovery: { isOutage: boolean }) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** An order was accepted: the credentials are good for some. */
  accepted(): void {
    this.#refusedResource = undefined;
  }

  /**
   * An order about `resource` was refused for its credentials. However often it is refused again, that may be the
   * trouble of this one alone; orders about two, and none accepted between them, are the platform's: only a listing
   * that begins later says otherwise.
   */
  refused(resource: string, problem: string): void {
    this.#refusedResource ??= resource;
    if (this.#refusedResource === resource) return;
    this.#refusedAt = this.#deps.clock.now();
    this.#enter({ kind: 'down', problem });
  }

  /** A listing that began at `begunAt` failed, or cannot be believed. Rejects if the store does. */
  async reportProblem(found: PlatformProblem, begunAt: number): Promise<void> {
    this.#enter(found);
    await this.#mark(begunAt);
  }

  /**
   * A listing that began at `begunAt` can be believed. What was waiting gets the time of the outage back first.
   * Rejects if the store does: then nothing is believed yet.
   */
  async answered(begunAt: number): Promise<void> {
    if (this.#refusedAt >= begunAt) return this.#mark(this.#refusedAt);
    await this.#endOutage();
    if (this.#current === undefined) return;
    const isOutage = this.#hasLogged;
    if (isOutage) this.#deps.log.info({}, 'the platform can be believed again');
    this.#current = undefined;
    this.#hasLogged = false;
    this.#isMarked = false;
    for (const listener of this.#listeners) listener({ isOutage });
  }

  #enter(found: PlatformProblem): void {
    if (!this.#hasLogged || this.#current?.kind !== found.kind)
      this.#deps.log.error({ problem: found.problem }, alarms[found.kind]);
    this.#hasLogged = true;
    this.#current = found;
  }

  /** The first of several processes, or an earlier one that ended meanwhile, has said since when. */
  async #mark(since: number): Promise<void> {
    if (this.#isMarked) return;
    await this.#deps.store.transact(async (tx) => {
      if ((await tx.marks.get('platform_down_since')) === null)
        await tx.marks.put('platform_down_since', since);
    });
    this.#isMarked = true;
  }

  /** Whoever removes the mark moves the deadlines: they are moved once, by whichever process. */
  async #endOutage(): Promise<void> {
    const { store, clock, log } = this.#deps;
    if ((await store.read.marks.get('platform_down_since')) === null) return;
    const byMs = await store.transact(async (tx) => {
      const since = await tx.marks.remove('platform_down_since');
      if (since === null) return 0;
      const lengthMs = Math.max(0, clock.now() - since);
      await tx.work.extendDeadlines(lengthMs);
      return lengthMs;
    });
    if (byMs > 0) log.info({ byMs }, 'the deadlines of open work are moved by the length of the outage');
  }
}
