import type { Clock } from '../ports/clock.ts';

/** The time of a call ran out. */
export class TookTooLong extends Error {
  override readonly name = 'TookTooLong';

  constructor(timeoutMs: number) {
    super(`no whole answer within ${timeoutMs} ms`);
  }
}

/**
 * Gives `work` so much time as a whole: however slowly bytes trickle in, it ends then.
 *
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
