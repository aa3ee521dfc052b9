import type { Log } from '../ports/log.ts';

/**
 * Whether the platform answers. While it does not, reads go on from the store, every offer is unavailable
 * and nothing terminal is decided (settled).
 */
export class PlatformHealth {
  readonly #log: Log;
  #problem: string | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  get isUp(): boolean {
    return this.#problem === undefined;
  }

  answered(): void {
    if (this.#problem !== undefined) this.#log.info({}, 'the platform answers again');
    this.#problem = undefined;
  }

  failed(problem: string): void {
    if (this.#problem === undefined)
      this.#log.error(
        { problem },
        'the platform does not answer: nothing is sold and no state is changed until it does',
      );
    this.#problem = problem;
  }
}
