/** Limits of an examination by `berth doctor`. */
export interface Asking {
  /** Limit for one request to the platform, in milliseconds. */
  withinMs: number;
  /** Aborted when the examination ends; cancels the requests under way. */
  signal: AbortSignal;
}

/**
 * Starts all sources at once and yields their values in order. A source that hangs delays the output of later ones,
 * but not their work.
 */
export async function* sideBySide<T>(sources: readonly AsyncIterable<T>[]): AsyncGenerator<T> {
  yield* inOrder(sources.map(begin));
}

async function* inOrder<T>(begun: readonly AsyncIterable<T>[]): AsyncGenerator<T> {
  for (const source of begun) yield* source;
}

/** Reads ahead of the consumer. */
function begin<T>(source: AsyncIterable<T>): AsyncIterable<T> {
  const values: T[] = [];
  let wake = Promise.withResolvers<void>();
  let isOver = false;
  const running = (async () => {
    for await (const value of source) {
      values.push(value);
      wake.resolve();
    }
  })().finally(() => {
    isOver = true;
    wake.resolve();
  });
  // The consumer gets the error after the values that precede it.
  running.catch(() => {});
  return (async function* () {
    for (;;) {
      yield* values.splice(0);
      if (isOver && values.length === 0) break;
      await wake.promise;
      wake = Promise.withResolvers<void>();
    }
    await running;
  })();
}
