interface Entry<T> {
  at: number;
  order: number;
  item: T;
}

/** A queue ordered by due time, then by insertion. A binary heap. */
export class DueQueue<T> {
  readonly #heap: Entry<T>[] = [];
  #order = 0;

  push(at: number, item: T): void {
    const entry = { at, order: this.#order++, item };
    let index = this.#heap.length;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = this.#heap[parent];
      if (above === undefined || !isBefore(entry, above)) break;
      this.#heap[index] = above;
      index = parent;
    }
    this.#heap[index] = entry;
  }

  /** Due time of the first item; undefined: the queue is empty. */
  nextAt(): number | undefined {
    return this.#heap[0]?.at;
  }

  /** Removes and returns the first item if it is due by `end`. */
  takeUntil(end: number): { at: number; item: T } | undefined {
    const first = this.#heap[0];
    if (first === undefined || first.at > end) return undefined;
    const last = this.#heap.pop();
    if (last === undefined || this.#heap.length === 0) return first;
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
    return first;
  }
}

function isBefore(a: Entry<unknown>, b: Entry<unknown>): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
