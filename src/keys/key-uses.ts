/** When each key was last used. Kept in memory and written periodically, so that a request causes no write. */
export class KeyUses {
  readonly #uses = new Map<string, number>();

  note(keyId: string, at: number): void {
    this.#uses.set(keyId, at);
  }

  /** Writes the uses noted since the last call. If `record` rejects, the next call writes them again. */
  async write(
    record: (uses: readonly (readonly [keyId: string, at: number])[]) => Promise<void>,
  ): Promise<void> {
    if (this.#uses.size === 0) return;
    // Every process writes in the same order, so that two of them cannot deadlock on the same keys.
    const uses = [...this.#uses].sort(([a], [b]) => (a < b ? -1 : 1));
    await record(uses);
    for (const [keyId, at] of uses) if (this.#uses.get(keyId) === at) this.#uses.delete(keyId);
  }
}
