import { nextTurn } from './clock.ts';

const SLICE = 500;

/**
 * Yields the items in slices and returns to the event loop between them. Slices are counted, not timed, so that the
 * same items always pause at the same places.
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
  /** Called before each item. */
  isStopped: () => boolean;
}

/** Runs `work` for each item, `atOnce` at a time, slice by slice. Resolves with false if it was stopped early. */
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
