const LEAST = 4;

/** Public addresses, few, the one freed last given first: a dead machine's address is soon another's. */
export class Addresses {
  readonly #free: string[] = [];
  #made = 0;

  take(): string {
    if (this.#made < LEAST) return this.#make();
    return this.#free.pop() ?? this.#make();
  }

  free(address: string): void {
    this.#free.push(address);
  }

  #make(): string {
    return `203.0.113.${++this.#made}`;
  }
}
