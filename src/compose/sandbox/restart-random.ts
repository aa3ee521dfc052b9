import { createSeededRandom, type RandomState, type SeededRandom } from '../../drivers/kit/seeded-random.ts';

export interface RestartRandom extends SeededRandom {
  /** Numbers that `start` draws come from another sequence, so that a restart does not change later ones. */
  duringStart<T>(start: () => Promise<T>): Promise<T>;
}

/** @param state the state of the main sequence, by default its start */
export function createRestartRandom(seed: string, state?: RandomState): RestartRandom {
  const own = createSeededRandom(seed, state);
  let current = own;
  return {
    next: () => current.next(),
    bytes: (length) => current.bytes(length),
    state: () => own.state(),
    duringStart(start) {
      current = createSeededRandom(`${seed}/start`);
      return start().finally(() => {
        current = own;
      });
    },
  };
}
