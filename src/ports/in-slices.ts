import { nextTurn } from './clock.ts';

const SLICE = 500;

/**
 * The items, with a pause after each few hundred in which the event loop answers others. Counted and not timed, so that
 * the same items always have the same pauses.
 */
export async function* inSlices<Item>(items: Iterable<Item>): AsyncGenerator<Item[], void> {
  let slice: Item[] = [];
  for (const item of items) {
    if (slice.length === SLICE) {
      yield slice;
      slice = [];
      await nextTurn();
    }
    slice.push(item);
  }
  yield slice;
}

interface Pace {
  atOnce: number;
  /** Asked before each item. */
  isStopped: () => boolean;
}

/** Runs `work` for each of the items, slice by slice and `atOnce` side by side; false: it was stopped before the last. */
export async function forEachInSlices<Item>(
  items: Iterable<Item>,
  { atOnce, isStopped }: Pace,
  work: (item: Item) => Promise<unknown>,
): Promise<boolean> {
  for await (const slice of inSlices(items)) {
    const queue = slice.values();
    const take = async () => {
      for (const item of queue) {
        if (isStopped()) return;
        await work(item);
      }
    };
    await Promise.all(Array.from({ length: Math.min(atOnce, slice.length) }, take));
    if (isStopped()) return false;
  }
  return true;
}
