/**
 * The first answer of several that are asked one after another: the next when the one before failed, or was silent for
 * so long.
 *
 * @throws {AggregateError} of all problems, in their order, if none answers
 */
export async function hedged<T>(calls: readonly (() => Promise<T>)[], pauseMs: number): Promise<T> {
  const begun: Promise<T>[] = [];
  for (const call of calls) {
    const last = call();
    begun.push(last);
    const { promise: silence, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => resolve(false), pauseMs);
    const isAnswered = await Promise.race([
      Promise.any(begun).then(() => true),
      last.then(
        () => true,
        () => false,
      ),
      silence,
    ]).catch(() => false);
    clearTimeout(timer);
    if (isAnswered) break;
  }
  return Promise.any(begun);
}
