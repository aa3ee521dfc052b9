import { and, eq, lt } from 'drizzle-orm';
import type { Transaction } from '../../orchestrator/ports/store.ts';
import type { Db } from './db.ts';
import { idempotency } from './schema.ts';

export function idempotencyWriter(db: Db): Transaction['idempotency'] {
  return {
    find: async (accountId, key) =>
      db
        .select()
        .from(idempotency)
        .where(and(eq(idempotency.accountId, accountId), eq(idempotency.key, key)))
        .get() ?? null,
    insert: async (record) => void db.insert(idempotency).values(record).run(),
    deleteCreatedBefore: async (time) =>
      void db.delete(idempotency).where(lt(idempotency.createdAt, time)).run(),
  };
}
