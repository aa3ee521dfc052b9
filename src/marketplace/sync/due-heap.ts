interface Entry {
  key: string;
  at: number;
  /** Of two keys with the same time, the one that was put first comes first. */
  order: number;
}

/** A binary heap of keys by due time. Putting and taking a key cost O(log n). */
export class DueHeap {
  #entries: Entry[] = [];
  readonly #valid = new Map<string, Entry>();
  #puts = 0;

  has(key: string): boolean {
    return this.#valid.has(key);
  }

  /** Makes the key due at `at` or earlier. */
  put(key: string, at: number): void {
    const known = this.#valid.get(key);
    if (known !== undefined && known.at <= at) return;
    const entry = { key, at, order: ++this.#puts };
    // The old entry stays in the heap and is skipped later.
    this.#valid.set(key, entry);
    this.#entries.push(entry);
    this.#rise(this.#entries.length - 1);
  }

  /** Delays the key by `byMs`. Does nothing if the key is absent. */
  postpone(key: string, byMs: number): void {
    const known = this.#valid.get(key);
    if (known === undefined) return;
    this.#valid.delete(key);
    this.put(key, known.at + byMs);
  }

  /** Removes the matching keys. */
  drop(isDropped: (key: string) => boolean): void {
    for (const key of this.#valid.keys()) if (isDropped(key)) this.#valid.delete(key);
  }

  /** When the next key is due; null: the heap is empty. */
  nextAt(): number | null {
    this.#dropReplaced();
    return this.#entries[0]?.at ?? null;
  }

  /** Removes the next key and returns it. */
  take(): string | undefined {
    this.#dropReplaced();
    const key = this.#entries[0]?.key;
    if (key !== undefined) {
      this.#removeFirst();
      this.#valid.delete(key);
    }
    return key;
  }

  clear(): void {
    this.#entries = [];
    this.#valid.clear();
  }

  #dropReplaced(): void {
    for (let first = this.#entries[0]; first !== undefined; first = this.#entries[0]) {
      if (this.#valid.get(first.key) === first) return;
      this.#removeFirst();
    }
  }

  #removeFirst(): void {
    const last = this.#entries.pop();
    if (last === undefined || this.#entries.length === 0) return;
    this.#entries[0] = last;
    this.#sink();
  }

  #rise(from: number): void {
    for (let index = from; index > 0; ) {
      const parent = (index - 1) >> 1;
      if (!this.#swapIfBefore(index, parent)) return;
      index = parent;
    }
  }

  #sink(): void {
    for (let index = 0; ; ) {
      const left = 2 * index + 1;
      const child = this.#isBefore(left + 1, left) ? left + 1 : left;
      if (!this.#swapIfBefore(child, index)) return;
      index = child;
    }
  }

  /** False if one of the entries does not exist. */
  #isBefore(index: number, other: number): boolean {
    const [entry, than] = [this.#entries[index], this.#entries[other]];
    if (entry === undefined || than === undefined) return false;
    return entry.at < than.at || (entry.at === than.at && entry.order < than.order);
  }

  #swapIfBefore(index: number, other: number): boolean {
    const [entry, than] = [this.#entries[index], this.#entries[other]];
    if (entry === undefined || than === undefined || !this.#isBefore(index, other)) return false;
    this.#entries[index] = than;
    this.#entries[other] = entry;
    return true;
  }
}
