/** Asks for the database's time periodically, so that a clock that follows it does not drift. */
export class TimeAsker {
  readonly #ask: () => Promise<void>;
  readonly #everyMs: number;
  #timer: NodeJS.Timeout | undefined;
  #asked: Promise<void> = Promise.resolve();
  #isStopped = false;

  /** `ask` may reject; it is called again all the same. */
  constructor(ask: () => Promise<void>, everyMs: number) {
    this.#ask = ask;
    this.#everyMs = everyMs;
  }

  start(): void {
    if (this.#isStopped) return;
    this.#timer = setTimeout(() => {
      this.#asked = this.#ask()
        .catch(() => undefined)
        .then(() => this.start());
    }, this.#everyMs).unref();
  }

  /** Waits for the question under way. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#asked;
  }
}
