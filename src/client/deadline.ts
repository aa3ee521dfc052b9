import type { Clock } from '../ports/clock.ts';

/** A call exceeded its time limit. */
export class TookTooLong extends Error {
  override readonly name = 'TookTooLong';

  constructor(timeoutMs: number) {
    super(`no whole answer within ${timeoutMs} ms`);
  }
}

/**
 * Limits the total time of `work`, even if bytes keep trickling in. `given` aborts it earlier.
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
