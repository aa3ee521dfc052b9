/**
 * Starts the calls one after another: the next when the previous one fails or takes longer than `pauseMs`. Returns
 * the first answer.
 *
 * @throws {AggregateError} of all problems, in order, if every call fails
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
