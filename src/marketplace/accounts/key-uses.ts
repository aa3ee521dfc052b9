import type { Clock, Timer } from '../../ports/clock.ts';
import type { Log } from '../../ports/log.ts';
import type { Authenticator } from './authenticate.ts';

const EVERY_MS = 60_000;

/** Writes once a minute when each key was used last. */
export class KeyUses {
  readonly #deps: { authenticator: Authenticator; clock: Clock; log: Log };
  #timer: Timer | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(deps: { authenticator: Authenticator; clock: Clock; log: Log }) {
    this.#deps = deps;
  }

  start(): void {
    this.#timer = this.#deps.clock.setTimer(EVERY_MS, () => {
      this.#writing = this.#write();
      this.start();
    });
  }

  /** Writes what is left. */
  async stop(): Promise<void> {
    this.#timer?.cancel();
    await this.#writing;
    await this.#write();
  }

  async #write(): Promise<void> {
    const { authenticator, log } = this.#deps;
    await authenticator
      .recordUses()
      .catch((err) => log.warn({ err }, 'when keys were used could not be written; it is tried again'));
  }
}
