import type { Clock } from '../../ports/clock.ts';
import { broken, type Diagnosis, warning } from '../../ports/diagnosis.ts';
import { InUse } from '../../ports/errors.ts';

/** The time limits of a check, and the controller that aborts its questions. */
interface Within {
  clock: Clock;
  over: AbortController;
  /** For one finding. */
  answerMs: number;
  /** For all of them, in milliseconds since the epoch. */
  endsAt: number;
}

/**
 * Passes the findings of a check on. If the check fails or times out, that is its last finding, and running questions
 * are aborted.
 */
export async function* guarded(
  subject: string,
  { clock, over, answerMs, endsAt }: Within,
  findings: AsyncIterable<Diagnosis>,
): AsyncGenerator<Diagnosis> {
  const iterator = findings[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await inTime(clock, Math.min(answerMs, endsAt - clock.now()), iterator.next());
      if (next.done) return;
      yield next.value;
    }
  } catch (error) {
    if (error instanceof Late) over.abort();
    iterator.return?.().catch(() => {});
    yield verdictOn(subject, error);
  }
}

function verdictOn(subject: string, error: unknown): Diagnosis {
  const finding = error instanceof Error ? error.message : String(error);
  if (error instanceof InUse)
    return warning(
      subject,
      finding,
      'Do nothing if that process is the `berth serve` of this configuration.',
    );
  const remedy = error instanceof Late ? LATE_REMEDY : 'Fix this, and run the check again.';
  return broken(subject, finding, remedy);
}

const LATE_REMEDY =
  'The checks after it were skipped. Check that it runs, is not overloaded, and is reachable from this machine, then run the check again.';

class Late extends Error {
  override readonly name = 'Late';
}

/** @throws {Late} */
async function inTime<T>(clock: Clock, withinMs: number, answer: Promise<T>): Promise<T> {
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
