import type { Clock } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Alarms } from '../alarms/alarms.ts';
import { markOf } from '../model/marks.ts';
import type { Store } from '../model/store.ts';

/**
 * `down`: the platform does not answer or refuses Berth's credentials. `suspect`: it answers, but too many machines are
 * missing from its listing. `taken`: a server with another copy of this database writes to it.
 */
export interface PlatformProblem {
  kind: 'down' | 'suspect' | 'taken';
  problem: string;
}

const texts: Record<PlatformProblem['kind'], string> = {
  down: 'the platform does not answer: nothing is sold and no state is changed until it does. Fix the network, the credentials or the platform',
  suspect:
    'too many machines are missing from the platform: nothing is sold and no state is changed until it lists them again. ' +
    'Check that its key and project are still correct, and that no second server has a copy of the database; if the machines are really lost, run `berth losses accept`',
  taken:
    'another server has written to this platform with another copy of this database: this server sells nothing, changes nothing ' +
    "and ends nothing there. Accept no losses and remove no orphans: they may be the other's. Stop one of the two. If this database is to be used on, stop its servers, run `berth restore --in-place` and " +
    'start them again',
};
const KINDS = ['down', 'suspect', 'taken'] as const;

interface Deps {
  store: Store;
  clock: Clock;
  log: Log;
  alarms: Alarms;
  /** The name of the platform. */
  platform: string;
}

/**
 * Whether one platform can be trusted. If not, reads are answered from the store, its offers are unavailable and no
 * final state is written for its rows. The start of an outage is stored; at its end the deadlines of open work are
 * extended by its length.
 */
export class PlatformHealth {
  readonly #deps: Deps;
  readonly #listeners = new Set<(recovery: { isOutage: boolean }) => void>();
  /** A process starts without trust, since it has not listed the platform yet. */
  #current: PlatformProblem | undefined = { kind: 'down', problem: 'it has not been listed since the start' };
  #isOutage = false;
  #isMarked = false;
  #trustedSince = Number.NEGATIVE_INFINITY;
  /** The resource of the last refused call. Undefined after an accepted call. */
  #refusedResource: string | undefined;
  #refusedAt = Number.NEGATIVE_INFINITY;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  get isUp(): boolean {
    return this.#current === undefined;
  }

  get isSuspect(): boolean {
    return this.#current?.kind === 'suspect';
  }

  /** When the last outage ended, in milliseconds since the epoch. `-Infinity` if this process has seen none. */
  get trustedSince(): number {
    return this.#trustedSince;
  }

  /** Whether a server with another copy of the database writes to the platform. Then nothing may be changed. */
  get isTaken(): boolean {
    return this.#current?.kind === 'taken';
  }

  /** Calls `listener` whenever the platform becomes trusted. Returns the function that unsubscribes. */
  onRecovery(listener: (recovery: { isOutage: boolean }) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Records an accepted call: the credentials work for some resources. */
  accepted(): void {
    this.#refusedResource = undefined;
  }

  /**
   * Records that a call about `resource` was refused for its credentials. If only one resource is refused, the cause
   * may be that resource. Refusals for two resources without an accepted call between them put the platform `down`
   * until a later listing succeeds.
   */
  refused(resource: string, problem: string): void {
    this.#refusedResource ??= resource;
    if (this.#refusedResource === resource) return;
    this.#refusedAt = this.#deps.clock.now();
    this.#enter({ kind: 'down', problem });
  }

  /** Records that a listing that began at `begunAt` failed or is not trusted. Rejects if the store does. */
  async reportProblem(found: PlatformProblem, begunAt: number): Promise<void> {
    this.#enter(found);
    await this.#mark(begunAt);
  }

  /**
   * Records that a listing that began at `begunAt` is trusted. First extends the deadlines of open work by the length
   * of the outage. Rejects if the store does; then the platform is not trusted yet.
   */
  async answered(begunAt: number): Promise<void> {
    if (this.#refusedAt >= begunAt) return this.#mark(this.#refusedAt);
    await this.#endOutage();
    if (this.#current === undefined) return;
    const isOutage = this.#isOutage;
    this.#endOthers();
    if (isOutage) {
      this.#trustedSince = this.#deps.clock.now();
      this.#deps.log.info({}, 'the platform can be trusted again');
    }
    this.#current = undefined;
    this.#isOutage = false;
    this.#isMarked = false;
    for (const listener of this.#listeners) listener({ isOutage });
  }

  #enter(found: PlatformProblem): void {
    const { alarms, log, platform } = this.#deps;
    const { kind, problem } = found;
    this.#endOthers(kind);
    alarms.raise(
      {
        kind: `platform_${kind}`,
        subject: platform,
        platform,
        text: texts[kind],
        detail: problem,
        fields: { problem },
      },
      log,
    );
    this.#isOutage = true;
    this.#current = found;
  }

  #endOthers(kind?: PlatformProblem['kind']): void {
    for (const other of KINDS)
      if (other !== kind) this.#deps.alarms.end({ kind: `platform_${other}`, subject: this.#deps.platform });
  }

  /** Stores the start of the outage, unless another process has already stored it. */
  async #mark(since: number): Promise<void> {
    if (this.#isMarked) return;
    const mark = markOf(this.#deps.platform, 'platform_down_since');
    await this.#deps.store.transact(async (tx) => {
      if ((await tx.marks.get(mark)) === null) await tx.marks.put(mark, since);
    });
    this.#isMarked = true;
  }

  /** Removes the mark and extends the deadlines in one transaction, so only one process extends them. */
  async #endOutage(): Promise<void> {
    const { store, clock, log, platform } = this.#deps;
    const mark = markOf(platform, 'platform_down_since');
    if ((await store.read.marks.get(mark)) === null) return;
    const byMs = await store.transact(async (tx) => {
      const since = await tx.marks.remove(mark);
      if (since === null) return 0;
      const lengthMs = Math.max(0, clock.now() - since);
      await tx.work.extendDeadlines(platform, lengthMs);
      return lengthMs;
    });
    if (byMs > 0) log.info({ byMs }, 'the deadlines of open work are extended by the length of the outage');
  }
}
