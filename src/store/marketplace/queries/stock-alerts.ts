import { asc, eq } from 'drizzle-orm';
import type { StockAlertReader, StockAlertWriter } from '../../../marketplace/model/store.ts';
import type { Connection } from './connection.ts';

export function stockAlertReader({ db, tables: { stockAlerts } }: Connection): StockAlertReader {
  const byAge = [asc(stockAlerts.createdAt), asc(stockAlerts.id)];
  return {
    list: async () =>
      db
        .select()
        .from(stockAlerts)
        .orderBy(...byAge),
    ofUser: async (userId) =>
      db
        .select()
        .from(stockAlerts)
        .where(eq(stockAlerts.userId, userId))
        .orderBy(...byAge),
  };
}

export function stockAlertWriter(connection: Connection): StockAlertWriter {
  const {
    db,
    tables: { stockAlerts },
    locking,
  } = connection;
  return {
    ...stockAlertReader(connection),
    byId: async (id) =>
      (await locking.rows(db.select().from(stockAlerts).where(eq(stockAlerts.id, id))))[0] ?? null,
    insert: async (record) => void (await db.insert(stockAlerts).values(record)),
    update: async (record) =>
      void (await db.update(stockAlerts).set(record).where(eq(stockAlerts.id, record.id))),
    remove: async (id) => void (await db.delete(stockAlerts).where(eq(stockAlerts.id, id))),
  };
}
