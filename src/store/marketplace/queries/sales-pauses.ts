import { and, asc, eq } from 'drizzle-orm';
import type { PauseReader, PauseWriter } from '../../../marketplace/model/sales-pause.ts';
import { prepared } from '../../queries/prepared.ts';
import { upsert } from '../../queries/rows.ts';
import type { Connection } from './connection.ts';

const allPauses = prepared(({ db, salesPauses }: Connection, _: Record<never, never>) =>
  db
    .select()
    .from(salesPauses)
    .orderBy(asc(salesPauses.providerId), asc(salesPauses.region), asc(salesPauses.offerId)),
);

export function pauseReader(connection: Connection): PauseReader {
  return { list: () => allPauses(connection, {}) };
}

export function pauseWriter(connection: Connection): PauseWriter {
  const { db, salesPauses } = connection;
  return {
    ...pauseReader(connection),
    put: (pause) => upsert(connection, salesPauses, ['providerId', 'region', 'offerId'], pause),
    remove: async ({ providerId, region, offerId }) =>
      void (await db
        .delete(salesPauses)
        .where(
          and(
            eq(salesPauses.providerId, providerId),
            eq(salesPauses.region, region),
            eq(salesPauses.offerId, offerId),
          ),
        )),
  };
}
