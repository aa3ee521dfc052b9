const MAX_RECENT = 1_024;

/** Recent values by key, so that equal values are one object in memory. */
export class Recent<T> {
  readonly #values = new Map<string, T>();

  get(key: string, make: () => T): T {
    const known = this.#values.get(key);
    if (known !== undefined) return known;
    if (this.#values.size >= MAX_RECENT) this.#values.clear();
    const made = make();
    this.#values.set(key, made);
    return made;
  }
}
