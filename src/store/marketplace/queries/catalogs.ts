import { eq } from 'drizzle-orm';
import type { CatalogReader, CatalogWriter } from '../../../marketplace/model/store.ts';
import { prepared } from '../../queries/prepared.ts';
import type { Connection } from './connection.ts';

const catalogOfProvider = prepared(({ db, catalogs }: Connection, { providerId }: { providerId: string }) =>
  db.select().from(catalogs).where(eq(catalogs.providerId, providerId)),
);

export function catalogReader(connection: Connection): CatalogReader {
  const { db, catalogs } = connection;
  return {
    byProvider: async (providerId) => {
      const [catalog] = await catalogOfProvider(connection, { providerId });
      return catalog ?? null;
    },
    versions: async () =>
      db
        .select({ providerId: catalogs.providerId, version: catalogs.version, readAt: catalogs.readAt })
        .from(catalogs),
  };
}

export function catalogWriter(connection: Connection): CatalogWriter {
  const { db, catalogs } = connection;
  return {
    ...catalogReader(connection),
    put: async ({ providerId, ...values }) =>
      void (await db
        .insert(catalogs)
        .values({ providerId, ...values })
        .onConflictDoUpdate({ target: catalogs.providerId, set: values })),
    confirm: async (providerId, readAt) =>
      void (await db.update(catalogs).set({ readAt }).where(eq(catalogs.providerId, providerId))),
  };
}
