import { and, eq, lt } from 'drizzle-orm';
import type { Transaction } from '../../orchestrator/model/store.ts';
import type { Connection } from './connection.ts';

export function idempotencyWriter({
  db,
  tables: { idempotency },
  locking,
}: Connection): Transaction['idempotency'] {
  return {
    find: async (accountId, key) => {
      // The second of two requests with one key waits here for the first, and finds what that one made.
      await locking.name(`idempotency ${JSON.stringify([accountId, key])}`);
      const [found] = await db
        .select()
        .from(idempotency)
        .where(and(eq(idempotency.accountId, accountId), eq(idempotency.key, key)));
      return found ?? null;
    },
    insert: async (record) => void (await db.insert(idempotency).values(record)),
    deleteCreatedBefore: async (time) =>
      void (await db.delete(idempotency).where(lt(idempotency.createdAt, time))),
  };
}
