import { invalidRequest } from '../../contract/errors.ts';
import { type Changes, MAX_CHANGES } from '../../contract/extensions.ts';
import type { Clock } from '../../ports/clock.ts';
import type { Store } from '../model/store.ts';
import type { ChangeWaits } from './change-waits.ts';
import { fromCursor, type ReadCursor, toCursor } from './cursor.ts';

interface Deps {
  store: Pick<Store, 'read'>;
  clock: Pick<Clock, 'now'>;
  changeWaits: ChangeWaits;
}

interface Asked {
  /** The cursor. Without it, the client only asks where the changes currently end. */
  since?: string | undefined;
  /** How long to wait if there is no change, in milliseconds. */
  waitMs: number;
  /** Aborted when the client has disconnected. */
  client: AbortSignal;
}

/**
 * GET /x/changes: the instances and volumes of an account that were written after a cursor, or a reset.
 *
 * @throws {ApiError} `invalid_request` for a text that is not a cursor, `too_many_requests` if too many requests wait
 */
export async function listChanges(
  { store, clock, changeWaits }: Deps,
  accountId: string,
  { since, waitMs, client }: Asked,
): Promise<Changes> {
  let cursor = since === undefined ? undefined : readCursor(since);
  const wait = changeWaits.open(accountId, cursor === undefined ? 0 : waitMs, client);
  try {
    for (;;) {
      // The wait begins before the read, so that a commit during the read ends it.
      const woken = wait.next();
      const after = cursor?.position ?? null;
      const { epoch, changes, next, isCut, isLost } = await store.read.changes.page({
        accountId,
        after,
        limit: MAX_CHANGES,
      });
      const scope = { accountId, epoch, now: clock.now() };
      if (cursor !== undefined && (isLost || !cursor.isOf(scope))) {
        // The next read is without the cursor, to find where the changes end.
        cursor = undefined;
        continue;
      }
      const reset = cursor === undefined;
      if (reset || changes.length > 0 || wait.isOver)
        return {
          ...(since !== undefined && { since }),
          cursor: toCursor(scope, next),
          reset,
          changes,
          more: isCut,
        };
      await woken;
    }
  } finally {
    wait.close();
  }
}

function readCursor(text: string): ReadCursor {
  const cursor = fromCursor(text);
  if (cursor === undefined)
    throw invalidRequest([{ path: 'since', message: 'expected a cursor of an earlier reply' }]);
  return cursor;
}
