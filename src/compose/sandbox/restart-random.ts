import { createSeededRandom, type RandomState, type SeededRandom } from '../../drivers/kit/seeded-random.ts';

/** Draws during startup use a separate sequence, so that a restart does not change later numbers. */
export class RestartRandom implements SeededRandom {
  readonly #own: SeededRandom;
  readonly #ofStart: SeededRandom;
  #isStarting = false;

  /** @param state the state of the main sequence, by default its start */
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
