import { and, eq, gte, lt } from 'drizzle-orm';
import type { IdempotencyReader, IdempotencyWriter } from '../../../marketplace/model/create-once.ts';
import { firstOf } from '../../queries/rows.ts';
import type { Connection } from './connection.ts';

export function idempotencyReader({ db, idempotency, locking }: Connection): IdempotencyReader {
  return {
    find: async ({ userId, key }, since) => {
      await locking.name(`idempotency ${JSON.stringify([userId, key])}`);
      return firstOf(
        db
          .select()
          .from(idempotency)
          .where(
            and(eq(idempotency.userId, userId), eq(idempotency.key, key), gte(idempotency.createdAt, since)),
          ),
      );
    },
  };
}

export function idempotencyWriter(connection: Connection): IdempotencyWriter {
  const { db, idempotency } = connection;
  return {
    ...idempotencyReader(connection),
    insert: async (record, since) => {
      await db
        .delete(idempotency)
        .where(and(eq(idempotency.userId, record.userId), lt(idempotency.createdAt, since)));
      await db.insert(idempotency).values(record);
    },
  };
}
