/** A callback that is due at a moment of virtual time. */
interface Entry {
  at: number;
  order: number;
  run: () => void;
  isCancelled: boolean;
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
  #order = 0;
  #activity = 0;
  #atThisMoment = 0;
  readonly #heap: Entry[] = [];

  constructor(startAt: number) {
    this.#now = startAt;
  }

  get now(): number {
    return this.#now;
  }

  /** How many callbacks are still to run. */
  get pending(): number {
    return this.#heap.reduce((count, { isCancelled }) => count + (isCancelled ? 0 : 1), 0);
  }

  /** Notes that something runs, so that virtual time waits for it. */
  noteActivity(): void {
    this.#activity++;
  }

  after(delayMs: number, run: () => void): Scheduled {
    this.noteActivity();
    const entry = {
      at: this.#now + Math.max(0, delayMs),
      order: this.#order++,
      run,
      isCancelled: false,
    };
    push(this.#heap, entry);
    return {
      cancel: () => {
        entry.isCancelled = true;
      },
    };
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
      else if (++this.#atThisMoment > MAX_AT_ONE_MOMENT) throw new HotLoop('time does not pass any more');
      this.#now = Math.max(this.#now, entry.at);
      entry.run();
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

  #next(end: number): Entry | undefined {
    for (let first = this.#heap[0]; first !== undefined && first.at <= end; first = this.#heap[0]) {
      pop(this.#heap);
      if (!first.isCancelled) return first;
    }
    return undefined;
  }
}

function isBefore(a: Entry, b: Entry): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

function push(heap: Entry[], entry: Entry): void {
  let index = heap.length;
  heap.push(entry);
  while (index > 0) {
    const parent = (index - 1) >> 1;
    const above = heap[parent];
    if (above === undefined || !isBefore(entry, above)) break;
    heap[index] = above;
    heap[parent] = entry;
    index = parent;
  }
}

/** Removes the first entry. */
function pop(heap: Entry[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let index = 0;
  for (;;) {
    const [left, right] = [heap[2 * index + 1], heap[2 * index + 2]];
    const isRight = right !== undefined && left !== undefined && isBefore(right, left);
    const least = isRight ? right : left;
    if (least === undefined || !isBefore(least, last)) break;
    heap[index] = least;
    index = 2 * index + (isRight ? 2 : 1);
  }
  heap[index] = last;
}
