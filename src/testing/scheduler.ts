import { DueQueue } from '../platform-model/due-queue.ts';

/** A callback that is due at a moment of virtual time. */
interface Entry {
  run: () => void;
  /** It was cancelled, or it runs. */
  isOver: boolean;
}

export interface Scheduled {
  cancel(): void;
}

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
  #now: number;
  #activity = 0;
  #atThisMoment = 0;
  #pending = 0;
  readonly #queue = new DueQueue<Entry>();

  constructor(startAt: number) {
    this.#now = startAt;
  }

  get now(): number {
    return this.#now;
  }

  /** How many callbacks are still to run. */
  get pending(): number {
    return this.#pending;
  }

  /** Notes that something runs, so that virtual time waits for it. */
  noteActivity(): void {
    this.#activity++;
  }

  after(delayMs: number, run: () => void): Scheduled {
    this.noteActivity();
    const entry = { run, isOver: false };
    this.#queue.push(this.#now + Math.max(0, delayMs), entry);
    this.#pending++;
    return { cancel: () => this.#end(entry) };
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

  /** Runs every callback that is due until `end`. @throws {HotLoop} */
  async runUntil(end: number): Promise<void> {
    await this.settle();
    for (let entry = this.#next(end); entry !== undefined; entry = this.#next(end)) {
      if (entry.at > this.#now) this.#atThisMoment = 0;
      else if (++this.#atThisMoment > MAX_AT_ONE_MOMENT)
        throw new HotLoop('virtual time is stuck: too many callbacks at one moment');
      this.#now = Math.max(this.#now, entry.at);
      entry.item.run();
      await this.settle();
    }
    this.#now = Math.max(this.#now, end);
  }

  /** Waits until nothing can run unless time passes. */
  async settle(): Promise<void> {
    for (let quietTurns = 0; quietTurns < 2; ) {
      const before = this.#activity;
      await new Promise((resolve) => setImmediate(resolve));
      quietTurns = this.#activity === before ? quietTurns + 1 : 0;
    }
  }

  #next(end: number): { at: number; item: Entry } | undefined {
    for (let first = this.#queue.takeUntil(end); first !== undefined; first = this.#queue.takeUntil(end))
      if (this.#end(first.item)) return first;
    return undefined;
  }

  /** Whether it was still to run. */
  #end(entry: Entry): boolean {
    if (entry.isOver) return false;
    entry.isOver = true;
    this.#pending--;
    return true;
  }
}
