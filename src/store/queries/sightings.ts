import { and, asc, eq } from 'drizzle-orm';
import type { SightingReader, SightingWriter } from '../../orchestrator/model/sighting.ts';
import type { Connection } from './connection.ts';
import { prepared } from './prepared.ts';
import { firstOf, upsert } from './rows.ts';

const withoutRow = prepared(({ db, sightings }: Connection, { resourceId }: { resourceId: string }) =>
  db
    .select({ name: sightings.name })
    .from(sightings)
    .where(and(eq(sightings.resourceId, resourceId), eq(sightings.what, 'no_row'))),
);

const sightingsOf = prepared(({ db, sightings }: Connection, { platform }: { platform: string }) =>
  db
    .select()
    .from(sightings)
    .where(eq(sightings.platform, platform))
    .orderBy(asc(sightings.since), asc(sightings.name)),
);

export function sightingReader(connection: Connection): SightingReader {
  const { db, listings } = connection;
  return {
    listing: (platform, resourceKind) => {
      const isOf = and(eq(listings.platform, platform), eq(listings.resourceKind, resourceKind));
      return firstOf(db.select().from(listings).where(isOf));
    },
    list: (platform) => sightingsOf(connection, { platform }),
    hasNoRow: async (resourceId) => (await withoutRow(connection, { resourceId })).length > 0,
  };
}

export function sightingWriter(connection: Connection): SightingWriter {
  const { db, listings, sightings } = connection;
  return {
    ...sightingReader(connection),
    putListing: (listing) => upsert(connection, listings, ['platform', 'resourceKind'], listing),
    put: (sighting) =>
      upsert(connection, sightings, ['platform', 'resourceKind', 'what', 'name'], sighting, ['since']),
    remove: async ({ platform, resourceKind, what, name }) =>
      void (await db
        .delete(sightings)
        .where(
          and(
            eq(sightings.platform, platform),
            eq(sightings.resourceKind, resourceKind),
            eq(sightings.what, what),
            eq(sightings.name, name),
          ),
        )),
  };
}
