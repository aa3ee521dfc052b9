const LEAST = 4;

/** A few public addresses, reused at once: the address of a dead machine soon belongs to another one. */
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
