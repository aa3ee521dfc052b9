import type { Clock } from '../../ports/clock.ts';
import type { Store } from './store.ts';

/** The time after which a commit of another server is noticed if its notification was lost. */
const READ_AGAIN_MS = 2_000;

/**
 * Calls `read` after each write by any process until it returns a value. Returns null if it does not by `deadline`.
 * `isJustWritten` means that this process has just committed the row, so the first read is skipped.
 */
export async function whenWritten<T>(
  { store, clock }: { store: Pick<Store, 'watch'>; clock: Clock },
  subjectId: string,
  deadline: number,
  read: () => Promise<T | null>,
  { isJustWritten = false }: { isJustWritten?: boolean } = {},
): Promise<T | null> {
  for (let isKnown = isJustWritten; ; isKnown = false) {
    // The watch starts before the read, so that no write between the two is missed.
    const written = Promise.withResolvers<void>();
    const unwatch = store.watch(subjectId, written.resolve);
    try {
      const found = isKnown ? null : await read();
      const leftMs = deadline - clock.now();
      if (found !== null || leftMs <= 0) return found;
      const timer = clock.setTimer(Math.min(leftMs, READ_AGAIN_MS), written.resolve);
      await written.promise;
      timer.cancel();
    } finally {
      unwatch();
    }
  }
}
