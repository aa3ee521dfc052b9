import { nextTurn } from '../../ports/clock.ts';

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
