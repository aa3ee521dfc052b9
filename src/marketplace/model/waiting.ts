import type { Clock } from '../../ports/clock.ts';
import type { Store } from './store.ts';

/** A commit of another server whose notification was lost is noticed after this time. */
const READ_AGAIN_MS = 2_000;

/**
 * Calls `read` now and after each write of a deployment or a volume, in whichever process, until it returns something.
 * Null: it was not so by `deadline`. `isJustWritten`: this process has just committed what it waits for the end of, so
 * there is nothing to read yet.
 */
export async function whenWritten<T>(
  { store, clock }: { store: Pick<Store, 'watch'>; clock: Clock },
  subjectId: string,
  deadline: number,
  read: () => Promise<T | null>,
  { isJustWritten = false }: { isJustWritten?: boolean } = {},
): Promise<T | null> {
  for (let isKnown = isJustWritten; ; isKnown = false) {
    // Watched before it is read, so that no write between the two is missed.
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
