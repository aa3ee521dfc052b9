import type { Clock } from '../../../src/ports/clock.ts';
import { DueQueue } from '../../../src/work/due-queue.ts';

export interface Scheduled {
  cancel(): void;
}

/** 2026-11-21: when virtual time begins. */
export const START_AT = Date.UTC(2026, 10, 21);

/** More callbacks than this at one moment are an endless loop. */
const MAX_AT_ONE_MOMENT = 20_000;

/** Callbacks go on for ever without time passing. */
class HotLoop extends Error {
  override readonly name = 'HotLoop';
}

/**
 * Virtual time, in milliseconds since the Unix epoch. It stands still while anything can run, then jumps to the next
 * callback. Callbacks that are due at the same moment run in the order in which they were scheduled.
 */
export class Scheduler {
  /** This time in whole milliseconds, for all but the processes of replicas: providers, clients and the operator. */
  readonly clock: Clock = {
    now: () => Math.floor(this.#now),
    setTimer: (delayMs, callback) => this.after(Math.ceil(delayMs), callback),
  };
  #now: number;
  #activity = 0;
  #holds = 0;
  #atThisMoment = 0;
  readonly #quietTurns: number;
  readonly #queue = new DueQueue<() => void>();

  /** `quietTurns`: the event loop is settled after this many turns without activity. */
  constructor(startAt = START_AT, quietTurns = 2) {
    this.#now = startAt;
    this.#quietTurns = quietTurns;
  }

  get now(): number {
    return this.#now;
  }

  /** How many callbacks are still to run. */
  get pending(): number {
    return this.#queue.size;
  }

  /** Notes that something runs, so that virtual time waits for it. */
  noteActivity(): void {
    this.#activity++;
  }

  /** Virtual time waits until the returned function is called. */
  hold(): () => void {
    this.#holds++;
    return () => {
      this.#holds--;
    };
  }

  get isHeld(): boolean {
    return this.#holds > 0;
  }

  after(delayMs: number, run: () => void): Scheduled {
    this.noteActivity();
    const entry = this.#queue.push(this.#now + Math.max(0, delayMs), run);
    return { cancel: () => this.#queue.cancel(entry) };
  }

  /** Resolves in the next turn of the event loop; no virtual time passes until then. */
  nextTurn(): Promise<void> {
    this.noteActivity();
    return new Promise((resolve) => setImmediate(resolve));
  }

  /** Resolves after `delayMs` of virtual time. */
  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.after(delayMs, resolve));
  }

  /** When the next callback is due; undefined: there is none. */
  nextAt(): number | undefined {
    return this.#queue.nextAt();
  }

  /** How many callbacks are due at exactly that moment. */
  dueAt(moment: number): number {
    return this.#queue.entries().filter(({ at }) => at === moment).length;
  }

  /** Runs the first callback that is due until `end`. Returns whether there was one. @throws {HotLoop} */
  runNext(end: number): boolean {
    const next = this.#queue.takeUntil(end);
    if (next === undefined) return false;
    if (next.at <= this.#now && ++this.#atThisMoment > MAX_AT_ONE_MOMENT)
      throw new HotLoop('virtual time is stuck: too many callbacks at one moment');
    this.jumpTo(next.at);
    next.item();
    return true;
  }

  /** Runs every callback that is due until `end`. @throws {HotLoop} */
  async runUntil(end: number): Promise<void> {
    await this.settle();
    while (this.runNext(end)) await this.settle();
    this.jumpTo(end);
  }

  /** Sets the time, unless it is later already. Runs nothing. */
  jumpTo(at: number): void {
    if (at <= this.#now) return;
    this.#now = at;
    this.#atThisMoment = 0;
  }

  /** Waits until nothing can run unless time passes. */
  async settle(): Promise<void> {
    for (let quietTurns = 0; quietTurns < this.#quietTurns; ) {
      const before = this.#activity;
      await new Promise((resolve) => setImmediate(resolve));
      quietTurns = this.#activity === before && !this.isHeld ? quietTurns + 1 : 0;
    }
  }
}
