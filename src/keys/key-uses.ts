/** When keys were used last: remembered, and written now and then, so that a request writes nothing. */
export class KeyUses {
  readonly #uses = new Map<string, number>();

  note(keyId: string, at: number): void {
    this.#uses.set(keyId, at);
  }

  /** Writes what has come together since the last call; kept for the next one if that rejects. */
  async write(
    record: (uses: readonly (readonly [keyId: string, at: number])[]) => Promise<void>,
  ): Promise<void> {
    if (this.#uses.size === 0) return;
    // In one order everywhere: two processes that write the same keys do not wait for each other.
    const uses = [...this.#uses].sort(([a], [b]) => (a < b ? -1 : 1));
    await record(uses);
    for (const [keyId, at] of uses) if (this.#uses.get(keyId) === at) this.#uses.delete(keyId);
  }
}
