import type { Clock, Timer } from '../ports/clock.ts';
import { clearTimeout, performance, setImmediate, setTimeout } from '../ports/timers.ts';
import { type Due, DueQueue } from '../work/due-queue.ts';
import { type Duration, toMilliseconds } from './duration.ts';

/** Decides which time can be skipped, because only periodic work would happen in it. */
export interface Idleness {
  /** Time of the last event that may have consequences. */
  lastEventAt(): number;
  /** Whether work is due, or a deployment is not running yet. */
  isBusy(): Promise<boolean>;
  /** Whether a fault is armed. */
  isArmed(): boolean;
  /** Whether an armed fault has had an occasion to trigger since the last event, and spared it. */
  mayTrigger(): boolean;
  /** When the next transition of a machine or a volume ends by itself. */
  nextTransitionAt(): number;
  /** Time of the next event that is not periodic. Infinite if none is scheduled. */
  nextEventAt(): Promise<number>;
  /** Called after each skip. Nothing changed from `from` until `seenUntil`. */
  skipped(from: number, to: number, seenUntil: number): Promise<void>;
  /** Called at the end of an advance: runs a round of the periodic work, for what is due at that moment. */
  advanced(): Promise<void>;
}

/** After an event, time is not skipped for this long, so that every component notices it. Work then waits for something else. */
const CALM_AFTER_MS = 5 * 60_000;
/** A fault that has spared every occasion for this long no longer prevents skips. */
const SPARED_AFTER_MS = 60 * 60_000;
/** Shorter times are not skipped. */
const LEAST_SKIP_MS = 60_000;
/** Interval between checks whether time can be skipped. */
const ASK_EVERY_MS = 30_000;

/** The event loop is quiet after this many turns without activity. */
const QUIET_TURNS = 3;
/** More callbacks than this at one moment are an endless loop. */
const MAX_AT_ONE_MOMENT = 100_000;
/** After this time, a request without an answer waits for something other than time. */
const LONGEST_REQUEST_MS = 10 * 60_000;
/** Longer than every time limit of the servers. */
const LONGEST_BUSY_MS = 3 * 3_600_000;
/** A hundred years: the maximum of one advance. */
export const MAX_ADVANCE_MS = 36_525 * 86_400_000;

const nothing = (): void => undefined;

/** Throws if a move of time was broken off. */
type Check = () => void;

interface MoveOptions {
  /** Breaks the move off: it rejects with the signal's reason, and the next move begins. */
  signal?: AbortSignal | undefined;
}

const stillBusy = (afterMs: number): string =>
  `work is still in progress after ${Math.round(afterMs / 60_000)} minutes of sandbox time: a fault may keep it going. ` +
  'See the journal and the events of the faults; `advance` moves the clock by a given time';

/**
 * The clock of a sandbox. `virtual`: time passes only when it is advanced, or while a request waits for it. `real`:
 * time passes with the machine's clock, and can be advanced too.
 */
export class SandboxClock implements Clock {
  readonly kind: 'virtual' | 'real';
  #now: number;
  /** Real time at which `#now` was correct. Undefined if time does not pass by itself. */
  #runsSince: number | undefined;
  #alarm: NodeJS.Timeout | undefined;
  #activity = 0;
  #holds = 0;
  readonly #queue = new DueQueue<() => void>();
  /** Functions that end all waits for time: of requests, and of clients with deadlines. */
  readonly #waiting = new Set<(reason: Error) => void>();
  #idleness: Idleness | undefined;
  #askedAt = 0;
  /** The last move of time. Moves run one after another. */
  #lastMove: Promise<unknown> = Promise.resolve();
  /** Resolves when no `exclusively` call is running. */
  #released: Promise<unknown> = Promise.resolve();
  /** Why every move of time breaks off. */
  #broken: Error | undefined;
  /** Resolves when frozen time resumes. */
  #thawed: PromiseWithResolvers<void> | undefined;

  constructor(kind: 'virtual' | 'real', startAt: number) {
    this.kind = kind;
    this.#now = startAt;
    if (kind === 'real') this.#runsSince = performance.now();
  }

  /** Milliseconds since the Unix epoch. */
  now(): number {
    const passed = this.#runsSince === undefined ? 0 : performance.now() - this.#runsSince;
    return Math.floor(this.#now + passed);
  }

  setTimer(delayMs: number, callback: () => void): Timer {
    this.#activity++;
    const entry = this.#queue.push(this.now() + Math.max(0, Math.ceil(delayMs)), callback);
    this.#setAlarm();
    return { cancel: () => this.#queue.cancel(entry) };
  }

  /** Like `AbortSignal.timeout`, but by this clock. Clients use it for deadlines. */
  timeout(ms: number): AbortSignal {
    const controller = new AbortController();
    const late = () => {
      this.#waiting.delete(late);
      controller.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'));
    };
    this.#waiting.add(late);
    this.setTimer(ms, late);
    return controller.signal;
  }

  get timers(): number {
    return this.#queue.size;
  }

  get isFrozen(): boolean {
    return this.#thawed !== undefined;
  }

  /** Stops time until {@link resume}, for requests too. It can still be advanced. */
  freeze(): void {
    this.#now = this.now();
    this.#runsSince = undefined;
    this.#thawed ??= Promise.withResolvers();
    clearTimeout(this.#alarm);
  }

  resume(): void {
    this.#thawed?.resolve();
    this.#thawed = undefined;
    if (this.kind === 'real') this.#runsSince = performance.now();
    this.#setAlarm();
  }

  /** Stops virtual time while `work` runs: it has no timer. */
  async held<T>(work: () => Promise<T>): Promise<T> {
    this.#holds++;
    try {
      return await work();
    } finally {
      this.#holds--;
    }
  }

  /** Counts as activity while `work` runs and right after it, so that time waits for its consequences. */
  async noting<T>(work: Promise<T>): Promise<T> {
    this.#activity++;
    try {
      return await work;
    } finally {
      this.#activity++;
    }
  }

  /** Makes {@link advance} skip time in which only periodic work would happen. */
  skipIdle(idleness: Idleness): void {
    this.#idleness = idleness;
  }

  /**
   * Advances time by milliseconds, or by a text such as `5s`, and runs everything that comes due, in order. During idle
   * time, periodic work runs only once. It also runs at the end, so that what is due in an advance happens in it.
   * @throws {RangeError} for an invalid time, or more than a hundred years
   */
  async advance(by: Duration, options: MoveOptions = {}): Promise<void> {
    const ms = toMilliseconds(by);
    if (!(Number.isFinite(ms) && ms >= 0 && ms <= MAX_ADVANCE_MS))
      throw new RangeError(
        `time cannot be advanced by ${by}: give milliseconds from 0 to ${MAX_ADVANCE_MS}, or a duration such as 500ms, 90s, 1h30m or 30d`,
      );
    return this.#move(options, async (check) => {
      const end = this.now() + ms;
      await this.settle(check);
      while ((await this.#skip(end)) || (await this.#fireNext(end, check))) check();
      this.#moveTo(end);
      await this.#idleness?.advanced();
      await this.settle(check);
    });
  }

  /**
   * Advances time until all work that ends by itself has ended, by at most `limitMs`. Returns how much time passed. Work
   * and armed faults without an event for five minutes, such as held transitions, are not awaited.
   * @throws {Error} if work is still under way after `limitMs`
   */
  async advanceUntilIdle({
    limitMs = LONGEST_BUSY_MS,
    ...options
  }: MoveOptions & { limitMs?: number } = {}): Promise<number> {
    return this.#move(options, async (check) => {
      const begunAt = this.now();
      await this.settle(check);
      for (;;) {
        const calmMs = this.now() - Math.max(begunAt, this.#idleness?.lastEventAt() ?? begunAt);
        const goesOn =
          calmMs < CALM_AFTER_MS
            ? this.#idleness?.isArmed() || (await this.#idleness?.isBusy())
            : (this.#idleness?.nextTransitionAt() ?? Number.POSITIVE_INFINITY) <= begunAt + limitMs;
        if (!goesOn) return this.now() - begunAt;
        if (!(await this.#fireNext(begunAt + limitMs, check))) throw new Error(stillBusy(limitMs));
      }
    });
  }

  /** Waits until nothing more happens without time passing. */
  async settle(check: Check = nothing): Promise<void> {
    for (let quiet = 0; quiet < QUIET_TURNS; ) {
      check();
      const before = this.#activity;
      await new Promise((resolve) => setImmediate(resolve));
      quiet = this.#activity === before && this.#holds === 0 ? quiet + 1 : 0;
    }
  }

  /**
   * Awaits `work`. Virtual time passes as long as `work` waits for it.
   * @throws {Error} the reason, if {@link rewind} or {@link stop} ends the wait
   */
  async during<T>(work: Promise<T>): Promise<T> {
    const { promise: ended, resolve, reject } = Promise.withResolvers<T>();
    let isOver = false;
    const end = (reason: Error): void => reject(reason);
    this.#waiting.add(end);
    work.then(resolve, reject);
    const over = ended.then(nothing, nothing).then(() => {
      isOver = true;
      this.#waiting.delete(end);
    });
    if (this.kind === 'real') return ended;
    await this.settle();
    const broken = this.#broken;
    for (let isHeld = true; isHeld && !isOver; isHeld = this.isFrozen) {
      if (this.#thawed !== undefined) await Promise.race([this.#thawed.promise, over]);
      if (isOver) break;
      await this.#inTurn(async () => {
        const latest = this.now() + LONGEST_REQUEST_MS;
        await this.settle();
        while (!isOver && !this.isFrozen && this.#broken === broken && (await this.#fireNext(latest)));
      });
    }
    return ended;
  }

  /** Runs `work` while nothing else may advance the clock, except for timers that `work` waits for. */
  exclusively<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#released.then(async () => {
      for (let last: unknown; last !== this.#lastMove; await last) last = this.#lastMove;
      return work();
    });
    this.#released = turn.catch(nothing);
    return turn;
  }

  /** Resolves when no `exclusively` call is running. */
  async released(): Promise<void> {
    await this.#released;
  }

  /** Moves time, after earlier moves. */
  async #move<T>({ signal }: MoveOptions, move: (check: Check) => Promise<T>): Promise<T> {
    const check = (): void => {
      if (this.#broken !== undefined) throw this.#broken;
      signal?.throwIfAborted();
    };
    const moved = this.#released.then(() =>
      this.#inTurn(() => {
        check();
        return move(check);
      }),
    );
    return signal === undefined ? moved : orAborted(moved, signal);
  }

  #inTurn<T>(move: () => Promise<T>): Promise<T> {
    const turn = this.#lastMove.then(move);
    this.#lastMove = turn.catch(() => undefined);
    return turn;
  }

  /** Skips the idle part of the time until `end`. Returns whether it skipped. */
  async #skip(end: number): Promise<boolean> {
    const idleness = this.#idleness;
    const now = this.now();
    if (idleness === undefined || end - now < LEAST_SKIP_MS) return false;
    const calmMs = now - idleness.lastEventAt();
    if (calmMs < CALM_AFTER_MS || now - this.#askedAt < ASK_EVERY_MS) return false;
    this.#askedAt = now;
    if (calmMs < SPARED_AFTER_MS && idleness.mayTrigger()) return false;
    const eventAt = await idleness.nextEventAt();
    const target = Math.min(eventAt, end);
    if (target - now < LEAST_SKIP_MS) return false;
    // As after a machine's sleep: each timer that came due meanwhile fires once, in order, and its work completes.
    const due: Due<() => void>[] = [];
    for (let next = this.#queue.takeUntil(target); next !== undefined; next = this.#queue.takeUntil(target))
      due.push(next);
    this.#moveTo(target);
    await idleness.skipped(now, target, Math.min(target, eventAt - 1));
    for (const entry of due) {
      entry.item?.();
      await this.settle();
    }
    return true;
  }

  #moveTo(at: number): void {
    const now = this.now();
    if (at > now) this.#now += at - now;
  }

  /** Runs the next due entry until `end`, and all others of that moment. Returns false if there are none. */
  async #fireNext(end: number, check: Check = nothing): Promise<boolean> {
    let next = this.#queue.takeUntil(end);
    if (next === undefined) return false;
    const { at } = next;
    this.#moveTo(at);
    for (let count = 0; next !== undefined; next = this.#queue.takeUntil(at)) {
      if (++count > MAX_AT_ONE_MOMENT)
        throw new Error('virtual time is stuck: too many callbacks at one moment');
      next.item();
    }
    await this.settle(check);
    return true;
  }

  /** In real time, the earliest timer fires by itself. */
  #setAlarm(): void {
    if (this.#runsSince === undefined) return;
    clearTimeout(this.#alarm);
    const at = this.#queue.nextAt();
    if (at === undefined) return;
    this.#alarm = setTimeout(() => this.#ring(), Math.min(Math.max(0, at - this.now()), 2 ** 31 - 1)).unref();
  }

  #ring(): void {
    const now = this.now();
    for (let next = this.#queue.takeUntil(now); next !== undefined; next = this.#queue.takeUntil(now))
      next.item();
    this.#setAlarm();
  }

  set(at: number): void {
    this.#now = at;
    this.#askedAt = 0;
    if (this.#runsSince !== undefined) this.#runsSince = performance.now();
  }

  /** Sets the time, forwards or back. Pending timers are dropped, and waits end with the reason. */
  rewind(at: number, reason: Error): void {
    this.#drop(reason);
    this.set(at);
  }

  /** Breaks off every move of time with the reason, also those that begin later. */
  breakOff(reason: Error): void {
    this.#broken = reason;
  }

  /** Stops all timers. Waits end with the reason. */
  stop(reason: Error): void {
    clearTimeout(this.#alarm);
    this.#runsSince = undefined;
    this.#drop(reason);
  }

  #drop(reason: Error): void {
    this.#queue.clear();
    for (const end of this.#waiting) end(reason);
    this.#waiting.clear();
  }
}

/** Settles like `work`, or rejects when the signal aborts. */
function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

/** Wraps the clock for one server. After `revoke`, the server's timers do nothing. */
export function revocable(clock: Clock): { clock: Clock; revoke(): void } {
  let isRevoked = false;
  return {
    clock: {
      now: () => clock.now(),
      setTimer: (delayMs, callback) =>
        clock.setTimer(delayMs, () => {
          if (!isRevoked) callback();
        }),
    },
    revoke() {
      isRevoked = true;
    },
  };
}
