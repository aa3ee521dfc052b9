/** What one transaction locked, in order. Keys sort in the order in which every transaction locks rows. */
export class RowLocks {
  readonly violations: string[] = [];
  readonly #inserted = new Set<string>();
  readonly #held: string[] = [];

  /** No other transaction can wait for a row that this one inserted. */
  inserts(key: string): void {
    this.#inserted.add(key);
  }

  locks(key: string): void {
    if (this.has(key)) return;
    const later = this.#held.find((held) => held > key);
    if (later !== undefined) this.violations.push(`${key} is locked after ${later}`);
    this.#held.push(key);
  }

  has(key: string): boolean {
    return this.#inserted.has(key) || this.#held.includes(key);
  }
}
