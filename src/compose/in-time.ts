import type { Clock } from '../ports/clock.ts';

/** The limit of one question that a command asks a platform. The driver ends it and says what did not answer. */
export const QUESTION_MS = 5_000;
/** Longer: a driver that keeps that limit still says itself what did not answer. */
export const ANSWER_MS = QUESTION_MS + 1_000;

/** There was no answer in time. */
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
