/** Asks for the database's time again and again, so that a clock that follows it does not run away. */
export class TimeAsker {
  readonly #ask: () => Promise<void>;
  readonly #everyMs: number;
  #timer: NodeJS.Timeout | undefined;
  #asked: Promise<void> = Promise.resolve();
  #isStopped = false;

  /** `ask` may reject: it is asked again as if it had answered. */
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

  /** Waits for what is being asked. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearTimeout(this.#timer);
    await this.#asked;
  }
}
