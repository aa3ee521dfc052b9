import { createHmac } from 'node:crypto';

/** What the `X-Request-Id` of the nth request is drawn for. */
export const requestLabel = (n: number): string => `request/${n}`;

/**
 * What a run draws (names, order, moments, samples), from one seed, so that a reader of its transcript can draw it again.
 * A label draws the same value each time. Never used for private keys.
 */
export class Draws {
  readonly seed: string;

  constructor(seed: string) {
    this.seed = seed;
  }

  /** The id of the run. */
  get runId(): string {
    return this.hex('run id', 10);
  }

  /** Hex digits, at most 64. */
  hex(label: string, digits: number): string {
    return this.#bytes(label).toString('hex').slice(0, digits);
  }

  /** From 0 (inclusive) to 1 (exclusive). */
  fraction(label: string): number {
    return this.#bytes(label).readUIntBE(0, 6) / 2 ** 48;
  }

  /** A UUID of version 4. */
  uuid(label: string): string {
    const bytes = this.#bytes(label);
    bytes[6] = 0x40 | ((bytes[6] ?? 0) & 0x0f);
    bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f);
    return bytes.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  }

  /**
   * The items in a drawn order. With `nameOf` the order of two items depends on their names alone, so that a reader who
   * sees only some of the items can draw it again (`place`).
   */
  shuffled<T>(label: string, items: readonly T[], nameOf?: (item: T) => string): T[] {
    return items
      .map((item, index) => ({ item, place: this.place(label, nameOf?.(item) ?? String(index)) }))
      .toSorted((a, b) => a.place - b.place)
      .map(({ item }) => item);
  }

  /** The place of a name in the order of that label, from 0 to 1. */
  place(label: string, name: string): number {
    return this.fraction(`${label}/${name}`);
  }

  #bytes(label: string): Buffer {
    return createHmac('sha256', this.seed).update(label).digest();
  }
}
