import type { Clock } from '../ports/clock.ts';

/** The time of a call ran out. */
export class TookTooLong extends Error {
  override readonly name = 'TookTooLong';

  constructor(timeoutMs: number) {
    super(`no whole answer within ${timeoutMs} ms`);
  }
}

/**
 * Gives `work` so much time as a whole: however slowly bytes trickle in, it ends then. `given` ends it earlier.
 *
 * @throws {TookTooLong} or the reason of `given`
 */
export async function withDeadline<T>(
  clock: Clock,
  timeoutMs: number,
  work: (signal: AbortSignal) => Promise<T>,
  given?: AbortSignal,
): Promise<T> {
  const controller = new AbortController();
  const late = Promise.withResolvers<never>();
  const end = (reason: unknown): void => {
    late.reject(reason);
    controller.abort(reason);
  };
  const endByGiven = (): void => end(given?.reason);
  const timer = clock.setTimer(timeoutMs, () => end(new TookTooLong(timeoutMs)));
  given?.addEventListener('abort', endByGiven);
  try {
    given?.throwIfAborted();
    return await Promise.race([late.promise, work(controller.signal)]);
  } finally {
    timer.cancel();
    given?.removeEventListener('abort', endByGiven);
  }
}
