import { eq } from 'drizzle-orm';
import type { CatalogReader, CatalogWriter } from '../../../marketplace/model/store.ts';
import { prepared } from '../../queries/prepared.ts';
import { firstOf, upsert } from '../../queries/rows.ts';
import type { Connection } from './connection.ts';

const catalogOfProvider = prepared(({ db, catalogs }: Connection, { providerId }: { providerId: string }) =>
  db.select().from(catalogs).where(eq(catalogs.providerId, providerId)),
);

export function catalogReader(connection: Connection): CatalogReader {
  const { db, catalogs } = connection;
  return {
    byProvider: (providerId) => firstOf(catalogOfProvider(connection, { providerId })),
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
    put: (catalog) => upsert(connection, catalogs, ['providerId'], catalog),
    confirm: async (providerId, readAt) =>
      void (await db.update(catalogs).set({ readAt }).where(eq(catalogs.providerId, providerId))),
  };
}
