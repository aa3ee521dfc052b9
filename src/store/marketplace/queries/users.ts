import { asc, eq } from 'drizzle-orm';
import type { UserReader, UserWriter } from '../../../marketplace/model/store.ts';
import { often } from '../../queries/often.ts';
import type { Connection } from './connection.ts';

export function userReader(connection: Connection): UserReader {
  const {
    db,
    tables: { users },
    locking,
  } = connection;
  return {
    byId: async (id) => {
      const [record] = await often(connection, 'user', { id }, (values) =>
        locking.rows(db.select().from(users).where(eq(users.id, values.id))),
      );
      return record ?? null;
    },
    byEmail: async (email) => (await db.select().from(users).where(eq(users.email, email)))[0] ?? null,
    list: async () => db.select().from(users).orderBy(asc(users.createdAt), asc(users.id)),
  };
}

export function userWriter(connection: Connection): UserWriter {
  const {
    db,
    tables: { users },
  } = connection;
  return {
    ...userReader(connection),
    insert: async (record) => void (await db.insert(users).values(record)),
    update: async (record) => void (await db.update(users).set(record).where(eq(users.id, record.id))),
  };
}
