import { createSeededRandom, type RandomState, type SeededRandom } from '../drivers/kit/seeded-random.ts';

/** Seeded chance of a server. What it draws while it starts is apart: a restart changes no number that comes after. */
export class RestartRandom implements SeededRandom {
  readonly #own: SeededRandom;
  readonly #ofStart: SeededRandom;
  #isStarting = false;

  /** `state`: where the own numbers begin, if not at the start. */
  constructor(seed: string, state?: RandomState) {
    this.#own = createSeededRandom(seed, state);
    this.#ofStart = createSeededRandom(`${seed}/start`);
  }

  duringStart<T>(start: () => Promise<T>): Promise<T> {
    this.#isStarting = true;
    return start().finally(() => {
      this.#isStarting = false;
    });
  }

  next(): number {
    return (this.#isStarting ? this.#ofStart : this.#own).next();
  }

  bytes(length: number): Buffer {
    return (this.#isStarting ? this.#ofStart : this.#own).bytes(length);
  }

  state(): RandomState {
    return this.#own.state();
  }
}
