import { asc, eq } from 'drizzle-orm';
import type { KeyReader, KeyWriter } from '../../../marketplace/model/store.ts';
import { often } from '../../queries/often.ts';
import type { Connection } from './connection.ts';

export function keyReader(connection: Connection): KeyReader {
  const {
    db,
    tables: { apiKeys },
    locking,
  } = connection;
  return {
    byDigest: async (digest) => {
      const [record] = await often(connection, 'key', { digest }, (values) =>
        db.select().from(apiKeys).where(eq(apiKeys.digest, values.digest)),
      );
      return record ?? null;
    },
    byId: async (id) => (await locking.rows(db.select().from(apiKeys).where(eq(apiKeys.id, id))))[0] ?? null,
    ofUser: async (userId) =>
      db
        .select()
        .from(apiKeys)
        .where(eq(apiKeys.userId, userId))
        .orderBy(asc(apiKeys.createdAt), asc(apiKeys.id)),
  };
}

export function keyWriter(connection: Connection): KeyWriter {
  const {
    db,
    tables: { apiKeys },
  } = connection;
  return {
    ...keyReader(connection),
    insert: async (record) => void (await db.insert(apiKeys).values(record)),
    revoke: async (id, at) =>
      void (await db.update(apiKeys).set({ revokedAt: at }).where(eq(apiKeys.id, id))),
    recordUse: async (id, at) =>
      void (await often(connection, 'key used', { id, at }, (values) =>
        db.update(apiKeys).set({ lastUsedAt: values.at }).where(eq(apiKeys.id, values.id)),
      )),
  };
}
