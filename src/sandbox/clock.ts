import { DueQueue } from '../platform-model/due-queue.ts';
import type { Clock, Timer } from '../ports/clock.ts';

interface Entry {
  run: () => void;
  isOver: boolean;
}

/** What is known of what goes on, so that time in which nothing but the periodic happens can be skipped. */
export interface Idleness {
  /** When something last happened that may have consequences. */
  lastEventAt(): number;
  /** Whether something is under way that ends as time passes. */
  isBusy(): Promise<boolean>;
  /** Whether a fault waits for its occasion. */
  mayBeStruck(): boolean;
  /** When something is due that is not periodic; undefined: nothing is. */
  nextEventAt(): Promise<number | undefined>;
  /** Told of each skip, when its time has come: until `seenUntil` all was as it was `from`. */
  skipped(from: number, to: number, seenUntil: number): Promise<void>;
}

/** What happens is followed closely for so long: within that everybody has noticed. */
const CALM_AFTER_MS = 5 * 60_000;
/** What has been under way for so long without an event is stuck. */
const STUCK_AFTER_MS = 60 * 60_000;
/** Less is not worth skipping. */
const LEAST_SKIP_MS = 60_000;
/** How often it is asked whether time can be skipped. */
const ASK_EVERY_MS = 30_000;

/** So many turns of the event loop in which no timer was set are quiet. */
const QUIET_TURNS = 3;
/** More callbacks than this at one moment are an endless loop. */
const MAX_AT_ONE_MOMENT = 100_000;
/** A request that has had so much time, and has no answer, waits for something else. */
const LONGEST_REQUEST_MS = 10 * 60_000;
/** Longer than each window in which something must come to its end. */
const LONGEST_BUSY_MS = 3 * 3_600_000;
/** A hundred years: nobody advances time by more. */
export const MAX_ADVANCE_MS = 36_525 * 86_400_000;

const nothing = (): void => undefined;

const stillBusy = (afterMs: number): string =>
  `something is still under way after ${Math.round(afterMs / 60_000)} minutes of its time: a fault may hold it, or a transition that waits ` +
  'for polls. The journal and the dump tell of it; `advance` lets a given time pass';

/**
 * The time of a sandbox. `virtual`: it stands still unless it is advanced, or a request waits for it. `real`: it passes
 * with the time of this machine, and can be advanced beside that.
 */
export class SandboxClock implements Clock {
  readonly kind: 'virtual' | 'real';
  #now: number;
  /** Real time when `#now` was true; undefined: time stands still. */
  #runsSince: number | undefined;
  #alarm: NodeJS.Timeout | undefined;
  #isFrozen = false;
  #activity = 0;
  #holds = 0;
  #queue = new DueQueue<Entry>();
  readonly #pending = new Set<Entry>();
  /** What ends whatever waits for time: requests, and the deadlines of clients. */
  readonly #waiting = new Set<(reason: Error) => void>();
  #idleness: Idleness | undefined;
  #askedAt = 0;
  /** Who moves time does so one after another. */
  #lastMove: Promise<unknown> = Promise.resolve();
  /** Resolves when nobody has all of time to himself. */
  #released: Promise<unknown> = Promise.resolve();
  /** Resolves when time that was frozen goes on. */
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
    const entry = { run: callback, isOver: false };
    this.#pending.add(entry);
    this.#queue.push(this.now() + Math.max(0, Math.ceil(delayMs)), entry);
    this.#setAlarm();
    return {
      cancel: () => {
        entry.isOver = true;
        // The queue has it until its time comes, and nothing of what it held.
        entry.run = nothing;
        this.#pending.delete(entry);
      },
    };
  }

  /** As `AbortSignal.timeout`, in this time: the deadline of a client. */
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

  /** How many timers are set. */
  get timers(): number {
    return this.#pending.size;
  }

  get isFrozen(): boolean {
    return this.#isFrozen;
  }

  /** Time stands still until {@link resume}, for requests too; it can still be advanced. */
  freeze(): void {
    this.#now = this.now();
    this.#runsSince = undefined;
    this.#isFrozen = true;
    this.#thawed ??= Promise.withResolvers();
    clearTimeout(this.#alarm);
  }

  resume(): void {
    this.#isFrozen = false;
    this.#thawed?.resolve();
    this.#thawed = undefined;
    if (this.kind === 'real') this.#runsSince = performance.now();
    this.#setAlarm();
  }

  /** Nothing moves virtual time until the function that it returns is called: something is under way that has no timer. */
  hold(): () => void {
    this.#holds++;
    return () => {
      this.#holds--;
    };
  }

  /** Says that something happens as long as `work` runs and right after it, so that time waits for what follows. */
  async noting<T>(work: Promise<T>): Promise<T> {
    this.#activity++;
    try {
      return await work;
    } finally {
      this.#activity++;
    }
  }

  /** From now on {@link advance} skips time in which nothing but the periodic happens. */
  skipIdle(idleness: Idleness): void {
    this.#idleness = idleness;
  }

  /**
   * Lets `ms` milliseconds pass: everything that comes due happens, in order. Where nothing is under way, what is
   * periodic happens once for all of an idle time.
   *
   * @throws {RangeError} for what is no time, or more than a hundred years
   */
  async advance(ms: number): Promise<void> {
    if (!(Number.isFinite(ms) && ms >= 0 && ms <= MAX_ADVANCE_MS))
      throw new RangeError(`time cannot be advanced by ${ms} ms: give a number from 0 to ${MAX_ADVANCE_MS}`);
    await this.#released;
    return this.#inTurn(async () => {
      const end = this.now() + ms;
      await this.settle();
      while ((await this.#skip(end)) || (await this.#fireNext(end)));
      this.#moveTo(end);
    });
  }

  /**
   * Lets time pass until nothing is under way that ends by itself, at most `limitMs`; resolves with how much has passed. What waits
   * to be finished by hand is not waited for, and a fault that has no occasion for five minutes is not either.
   *
   * @throws {Error} where something is still under way then
   */
  async advanceUntilIdle(limitMs = LONGEST_BUSY_MS): Promise<number> {
    await this.#released;
    return this.#inTurn(async () => {
      const begunAt = this.now();
      await this.settle();
      for (;;) {
        const calmMs = this.now() - Math.max(begunAt, this.#idleness?.lastEventAt() ?? begunAt);
        const mayBeStruck = calmMs < CALM_AFTER_MS && this.#idleness?.mayBeStruck() === true;
        if (!mayBeStruck && !(await this.#idleness?.isBusy())) return this.now() - begunAt;
        if (!(await this.#fireNext(begunAt + limitMs))) throw new Error(stillBusy(limitMs));
      }
    });
  }

  /** Waits until nothing happens any more unless time passes. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < QUIET_TURNS; ) {
      const before = this.#activity;
      await new Promise((resolve) => setImmediate(resolve));
      quiet = this.#activity === before && this.#holds === 0 ? quiet + 1 : 0;
    }
  }

  /**
   * Waits for `work`. Where that waits for virtual time, time passes until it has ended.
   *
   * @throws {Error} the reason, where {@link rewind} or {@link stop} ends the wait
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
    for (let isHeld = true; isHeld && !isOver; isHeld = this.#isFrozen) {
      if (this.#thawed !== undefined) await Promise.race([this.#thawed.promise, over]);
      if (isOver) break;
      await this.#inTurn(async () => {
        const latest = this.now() + LONGEST_REQUEST_MS;
        await this.settle();
        while (!isOver && !this.#isFrozen && (await this.#fireNext(latest)));
      });
    }
    return ended;
  }

  /** Has all of time to itself: nobody moves it meanwhile, except that what `work` waits for comes due. */
  exclusively<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#released.then(async () => {
      for (let last: unknown; last !== this.#lastMove; await last) last = this.#lastMove;
      return work();
    });
    this.#released = turn.catch(nothing);
    return turn;
  }

  /** Resolves when nobody has all of time to himself. */
  async released(): Promise<void> {
    await this.#released;
  }

  #inTurn<T>(move: () => Promise<T>): Promise<T> {
    const turn = this.#lastMove.then(move);
    this.#lastMove = turn.catch(() => undefined);
    return turn;
  }

  /** Skips what is idle of the time until `end`; whether it did. */
  async #skip(end: number): Promise<boolean> {
    const idleness = this.#idleness;
    const now = this.now();
    if (idleness === undefined || end - now < LEAST_SKIP_MS) return false;
    const calmMs = now - idleness.lastEventAt();
    if (calmMs < CALM_AFTER_MS || now - this.#askedAt < ASK_EVERY_MS) return false;
    this.#askedAt = now;
    if (calmMs < STUCK_AFTER_MS && (idleness.mayBeStruck() || (await idleness.isBusy()))) return false;
    const eventAt = (await idleness.nextEventAt()) ?? Number.POSITIVE_INFINITY;
    const target = Math.min(eventAt, end);
    if (target - now < LEAST_SKIP_MS) return false;
    // As on a machine that slept: each timer that was due meanwhile fires once, in order, and what it does has its end.
    const due: Entry[] = [];
    for (let next = this.#take(target); next !== undefined; next = this.#take(target)) due.push(next.item);
    this.#moveTo(target);
    await idleness.skipped(now, target, Math.min(target, eventAt - 1));
    for (const { run } of due) {
      run();
      await this.settle();
    }
    return true;
  }

  #moveTo(at: number): void {
    const now = this.now();
    if (at > now) this.#now += at - now;
  }

  /** Fires what comes due first until `end`, and all else of that moment; false: there is nothing. */
  async #fireNext(end: number): Promise<boolean> {
    let next = this.#take(end);
    if (next === undefined) return false;
    const { at } = next;
    this.#moveTo(at);
    for (let count = 0; next !== undefined; next = this.#take(at)) {
      if (++count > MAX_AT_ONE_MOMENT) throw new Error('time does not pass any more');
      next.item.run();
    }
    await this.settle();
    return true;
  }

  #take(end: number): { at: number; item: Entry } | undefined {
    for (let next = this.#queue.takeUntil(end); next !== undefined; next = this.#queue.takeUntil(end)) {
      if (next.item.isOver) continue;
      next.item.isOver = true;
      this.#pending.delete(next.item);
      return next;
    }
    return undefined;
  }

  /** In real time the earliest timer fires by itself. */
  #setAlarm(): void {
    if (this.#runsSince === undefined) return;
    clearTimeout(this.#alarm);
    const at = this.#queue.nextAt();
    if (at === undefined) return;
    this.#alarm = setTimeout(() => this.#ring(), Math.min(Math.max(0, at - this.now()), 2 ** 31 - 1)).unref();
  }

  #ring(): void {
    const now = this.now();
    for (let next = this.#take(now); next !== undefined; next = this.#take(now)) next.item.run();
    this.#setAlarm();
  }

  /** Sets the time, back too. */
  set(at: number): void {
    this.#now = at;
    this.#askedAt = 0;
    if (this.#runsSince !== undefined) this.#runsSince = performance.now();
  }

  /** Sets the time, back too: nothing of what was set before comes due, and what waits for it ends with the reason. */
  rewind(at: number, reason: Error): void {
    this.#drop(reason);
    this.set(at);
  }

  /** No timer fires any more, and what waits for one ends with the reason. */
  stop(reason: Error): void {
    clearTimeout(this.#alarm);
    this.#runsSince = undefined;
    this.#drop(reason);
  }

  #drop(reason: Error): void {
    this.#queue = new DueQueue();
    for (const entry of this.#pending) entry.isOver = true;
    this.#pending.clear();
    for (const end of this.#waiting) end(reason);
    this.#waiting.clear();
  }
}

/** The clock for one server, which can be taken away from it: then its timers are gone, and those that it sets do nothing. */
export function revocable(clock: Clock): { clock: Clock; revoke(): void } {
  const timers = new Set<Timer>();
  let isRevoked = false;
  return {
    clock: {
      now: () => clock.now(),
      setTimer(delayMs, callback) {
        if (isRevoked) return { cancel: () => undefined };
        const timer = clock.setTimer(delayMs, () => {
          timers.delete(timer);
          callback();
        });
        timers.add(timer);
        return {
          cancel: () => {
            timers.delete(timer);
            timer.cancel();
          },
        };
      },
    },
    revoke() {
      isRevoked = true;
      for (const timer of timers) timer.cancel();
      timers.clear();
    },
  };
}
