import type { Clock } from '../ports/clock.ts';

/** A call exceeded its time limit. */
export class TookTooLong extends Error {
  override readonly name = 'TookTooLong';

  constructor(timeoutMs: number) {
    super(`no whole answer within ${timeoutMs} ms`);
  }
}

/**
 * Limits the total time of `work`, even if bytes keep trickling in.
 * @throws {TookTooLong}
 */
export async function withDeadline<T>(
  clock: Clock,
  timeoutMs: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const late = Promise.withResolvers<never>();
  const timer = clock.setTimer(timeoutMs, () => {
    const reason = new TookTooLong(timeoutMs);
    late.reject(reason);
    controller.abort(reason);
  });
  try {
    return await Promise.race([late.promise, work(controller.signal)]);
  } finally {
    timer.cancel();
  }
}
