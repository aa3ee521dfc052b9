import type { Clock } from '../ports/clock.ts';
import { onClosedOutput } from '../runtime/print.ts';

/** How often a watched list is read again. */
export const WATCH_EVERY_MS = 2_000;

/** Repeats `round` until the signal is aborted. @throws what a round throws */
export async function repeat(
  clock: Pick<Clock, 'setTimer'>,
  end: AbortSignal,
  round: () => Promise<void>,
): Promise<void> {
  while (!end.aborted) {
    await round();
    if (!end.aborted) await pause(clock, end);
  }
}

function pause(clock: Pick<Clock, 'setTimer'>, end: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const stop = (): void => {
      timer.cancel();
      resolve();
    };
    const timer = clock.setTimer(WATCH_EVERY_MS, () => {
      end.removeEventListener('abort', stop);
      resolve();
    });
    end.addEventListener('abort', stop, { once: true });
  });
}

/** Runs `body` with a signal that is aborted by Ctrl-C, by SIGTERM, or when the reader closes the output. */
export async function untilInterrupted(body: (end: AbortSignal) => Promise<void>): Promise<void> {
  const controller = new AbortController();
  const stop = (): void => controller.abort();
  const events = ['SIGINT', 'SIGTERM'] as const;
  for (const event of events) process.once(event, stop);
  const ignoreOutput = onClosedOutput(stop);
  // The timers of the clock do not keep the process alive.
  const alive = setInterval(() => undefined, WATCH_EVERY_MS);
  try {
    await body(controller.signal);
  } finally {
    clearInterval(alive);
    for (const event of events) process.off(event, stop);
    ignoreOutput();
  }
}

/** The rows of a watched list that were not there, or were different, when it was read before. */
export class ChangedRows {
  #before = new Set<string>();
  /** The widths of the columns, once a table was printed. */
  widths: readonly number[] | undefined;
  /** Whether it was read only once. */
  isFirst = true;
  #rounds = 0;

  of(rows: readonly object[]): object[] {
    const texts = rows.map((row) => JSON.stringify(row));
    const changed = rows.filter((_row, index) => !this.#before.has(texts[index] ?? ''));
    this.#before = new Set(texts);
    this.isFirst = this.#rounds++ === 0;
    return changed;
  }
}
