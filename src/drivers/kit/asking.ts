/** The limits of an examination by `berth doctor`. */
export interface Asking {
  /** Of one question to the platform, in milliseconds. */
  withinMs: number;
  /** Aborted when the examination is over: what is under way then is ended. */
  signal: AbortSignal;
}

/** Begins all of them at once, and yields in their order: one that hangs delays the others' lines, and none of their work. */
export async function* sideBySide<T>(sources: readonly AsyncIterable<T>[]): AsyncGenerator<T> {
  yield* inOrder(sources.map(begin));
}

async function* inOrder<T>(begun: readonly AsyncIterable<T>[]): AsyncGenerator<T> {
  for (const source of begun) yield* source;
}

/** Runs ahead of its reader. */
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
  // The reader gets the error after the values before it.
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
