/** An item of a queue, from its push until it is taken or cancelled. */
export interface Due<T> {
  readonly at: number;
  readonly order: number;
  /** Undefined: it was cancelled. */
  item: T | undefined;
  /** It was taken or cancelled. */
  isOver: boolean;
}

/**
 * A queue ordered by due time, then by insertion. A binary heap: a push and a take cost O(log n). A cancelled entry stays
 * in the heap, without its item, until it would be next.
 */
export class DueQueue<T> {
  readonly #heap: Due<T>[] = [];
  #order = 0;
  #size = 0;

  /** Number of items. */
  get size(): number {
    return this.#size;
  }

  push(at: number, item: T): Due<T> {
    const entry = { at, order: this.#order++, item, isOver: false };
    this.#size++;
    let index = this.#heap.length;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = this.#heap[parent];
      if (above === undefined || !isBefore(entry, above)) break;
      this.#heap[index] = above;
      index = parent;
    }
    this.#heap[index] = entry;
    return entry;
  }

  /** Releases the item, also of an entry that was taken. */
  cancel(entry: Due<T>): void {
    if (!entry.isOver) this.#end(entry);
    entry.item = undefined;
  }

  /** Cancels all entries. */
  clear(): void {
    for (const entry of this.#heap.splice(0)) this.cancel(entry);
  }

  /** The entries that are not over, in no order. */
  entries(): readonly Due<T>[] {
    return this.#heap.filter(({ isOver }) => !isOver);
  }

  /** Due time of the first item; undefined: the queue is empty. */
  nextAt(): number | undefined {
    return this.#first()?.at;
  }

  /** Removes and returns the first item if it is due by `end`. */
  takeUntil(end: number): (Due<T> & { item: T }) | undefined {
    const first = this.#first();
    if (first === undefined || first.at > end) return undefined;
    this.#removeFirst();
    this.#end(first);
    return first as Due<T> & { item: T };
  }

  #end(entry: Due<T>): void {
    entry.isOver = true;
    this.#size--;
  }

  #first(): Due<T> | undefined {
    while (this.#heap[0]?.isOver === true) this.#removeFirst();
    return this.#heap[0];
  }

  #removeFirst(): void {
    const last = this.#heap.pop();
    if (last === undefined || this.#heap.length === 0) return;
    let index = 0;
    for (;;) {
      const [left, right] = [this.#heap[2 * index + 1], this.#heap[2 * index + 2]];
      const isRight = right !== undefined && left !== undefined && isBefore(right, left);
      const least = isRight ? right : left;
      if (least === undefined || !isBefore(least, last)) break;
      this.#heap[index] = least;
      index = 2 * index + (isRight ? 2 : 1);
    }
    this.#heap[index] = last;
  }
}

function isBefore(a: Due<unknown>, b: Due<unknown>): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
