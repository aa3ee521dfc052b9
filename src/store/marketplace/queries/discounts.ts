import { asc, eq } from 'drizzle-orm';
import type { DiscountReader, DiscountWriter } from '../../../marketplace/model/store.ts';
import { often } from '../../queries/often.ts';
import type { Connection } from './connection.ts';

export function discountReader(connection: Connection): DiscountReader {
  const {
    db,
    tables: { discounts },
    locking,
  } = connection;
  return {
    byId: async (id) =>
      (await locking.rows(db.select().from(discounts).where(eq(discounts.id, id))))[0] ?? null,
    ofTeam: (teamId) =>
      often(connection, 'discounts', { teamId }, (values) =>
        db
          .select()
          .from(discounts)
          .where(eq(discounts.teamId, values.teamId))
          .orderBy(asc(discounts.startsAt), asc(discounts.id)),
      ),
    list: async () => db.select().from(discounts).orderBy(asc(discounts.startsAt), asc(discounts.id)),
  };
}

export function discountWriter(connection: Connection): DiscountWriter {
  const {
    db,
    tables: { discounts },
  } = connection;
  return {
    ...discountReader(connection),
    insert: async (record) => void (await db.insert(discounts).values(record)),
    update: async (record) =>
      void (await db.update(discounts).set(record).where(eq(discounts.id, record.id))),
  };
}
