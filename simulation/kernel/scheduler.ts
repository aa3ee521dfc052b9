/** Something that is to happen at a moment of virtual time. */
interface Entry {
  at: number;
  order: number;
  run: () => void;
  isCancelled: boolean;
}

export interface Scheduled {
  cancel(): void;
}

/** More than this at one moment is a loop that does not let time pass. */
const MAX_AT_ONE_MOMENT = 20_000;

/** A moment of virtual time that never ends. */
class HotLoop extends Error {
  override readonly name = 'HotLoop';
}

/**
 * Virtual time, in milliseconds since the Unix epoch. It stands still while anything can run, and then jumps to what
 * is due next; what is due at the same moment happens in the order in which it was planned.
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

  /** What is still to happen. */
  get pending(): number {
    return this.#heap.reduce((count, { isCancelled }) => count + (isCancelled ? 0 : 1), 0);
  }

  /** Tells that something runs: virtual time waits for it. */
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

  /** Lets all happen that is due until `end`. @throws {HotLoop} */
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

  /** Waits until nothing runs any more without time passing. */
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

/** Removes the first. */
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
