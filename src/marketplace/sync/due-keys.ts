import { type Due, DueQueue } from '../../work/due-queue.ts';

/** Keys by due time, each at most once. */
export class DueKeys {
  readonly #queue = new DueQueue<string>();
  readonly #entries = new Map<string, Due<string>>();

  has(key: string): boolean {
    return this.#entries.has(key);
  }

  /** Makes the key due at `at` or earlier. */
  put(key: string, at: number): void {
    const known = this.#entries.get(key);
    if (known === undefined || known.at > at) this.#move(key, known, at);
  }

  /** Delays the key by `byMs`. Does nothing if the key is absent. */
  postpone(key: string, byMs: number): void {
    const known = this.#entries.get(key);
    if (known !== undefined) this.#move(key, known, known.at + byMs);
  }

  /** Removes the matching keys. */
  drop(isDropped: (key: string) => boolean): void {
    for (const [key, entry] of this.#entries)
      if (isDropped(key)) {
        this.#queue.cancel(entry);
        this.#entries.delete(key);
      }
  }

  /** When the next key is due; null: there is none. */
  nextAt(): number | null {
    return this.#queue.nextAt() ?? null;
  }

  /** Removes the next key and returns it. */
  take(): string | undefined {
    const key = this.#queue.takeUntil(Number.POSITIVE_INFINITY)?.item;
    if (key !== undefined) this.#entries.delete(key);
    return key;
  }

  clear(): void {
    this.#queue.clear();
    this.#entries.clear();
  }

  #move(key: string, from: Due<string> | undefined, at: number): void {
    if (from !== undefined) this.#queue.cancel(from);
    this.#entries.set(key, this.#queue.push(at, key));
  }
}
