import type { Clock } from '../ports/clock.ts';

/**
 * Time limit of one question of a command to a platform. The driver enforces it, and names the part that did not
 * answer.
 */
export const QUESTION_MS = 5_000;
/** Longer, so that a driver that enforces the limit can still report the cause. */
export const ANSWER_MS = QUESTION_MS + 1_000;

/** The answer did not arrive in time. */
export class Late extends Error {
  override readonly name = 'Late';
}

/** @throws {Late} */
export async function inTime<T>(clock: Clock, withinMs: number, answer: Promise<T>): Promise<T> {
  answer.catch(() => {});
  const { promise, reject } = Promise.withResolvers<never>();
  const late = new Late(`no answer within ${Math.max(0, Math.round(withinMs / 1000))} s`);
  const timer = clock.setTimer(withinMs, () => reject(late));
  try {
    return await Promise.race([answer, promise]);
  } finally {
    timer.cancel();
  }
}
