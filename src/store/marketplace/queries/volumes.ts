import { and, asc, count, desc, eq, inArray, ne, type SQL, sql } from 'drizzle-orm';
import type { VolumeReader, VolumeWriter } from '../../../marketplace/ports/store.ts';
import type { VolumeRecord } from '../../../marketplace/records/volume-record.ts';
import type { Connection } from './connection.ts';

export function volumeReader(connection: Connection): VolumeReader {
  const {
    db,
    tables: { attachments, volumes },
    locking,
  } = connection;
  const find = async (condition: SQL): Promise<VolumeRecord | null> =>
    (await locking.rows(db.select().from(volumes).where(condition)))[0] ?? null;
  return {
    byId: (id) => find(eq(volumes.id, id)),
    byVolumeId: (volumeId) => find(eq(volumes.volumeId, volumeId)),
    page: async ({ teamId, statuses, offset, limit }) => {
      const conditions: SQL[] = [eq(volumes.teamId, teamId)];
      if (statuses !== undefined) conditions.push(inArray(volumes.status, [...statuses]));
      const where = and(...conditions);
      const page = await db
        .select()
        .from(volumes)
        .where(where)
        .orderBy(desc(volumes.createdAt), desc(volumes.id))
        .limit(limit)
        .offset(offset);
      const [all] = await db.select({ count: count() }).from(volumes).where(where);
      return { volumes: page, total: all?.count ?? 0 };
    },
    toTend: async (providerId) =>
      db
        .select()
        .from(volumes)
        .where(and(eq(volumes.providerId, providerId), isToTend(connection)))
        .orderBy(asc(volumes.createdAt), asc(volumes.id)),
    countByProvider: async () =>
      db
        .select({ providerId: volumes.providerId, count: count() })
        .from(volumes)
        .where(ne(volumes.status, 'deleted'))
        .groupBy(volumes.providerId)
        .orderBy(asc(volumes.providerId)),
    attachmentsOf: async ({ volumeId, deploymentId }) => {
      const conditions: SQL[] = [];
      if (volumeId !== undefined) conditions.push(eq(attachments.volumeId, volumeId));
      if (deploymentId !== undefined) conditions.push(eq(attachments.deploymentId, deploymentId));
      return db
        .select()
        .from(attachments)
        .where(and(...conditions))
        .orderBy(asc(attachments.volumeId), asc(attachments.deploymentId));
    },
  };
}

/** In the words of the partial index, which the database uses for a condition of these words. */
function isToTend({ tables: { volumes } }: Connection): SQL {
  return sql`(${volumes.action} IS NOT NULL OR ${volumes.cleanup} = 'wanted')`;
}

export function volumeWriter(connection: Connection): VolumeWriter {
  const {
    db,
    tables: { attachments, volumes },
  } = connection;
  return {
    ...volumeReader(connection),
    insert: async (record) => void (await db.insert(volumes).values(record)),
    // What it has cost is the ledger's.
    update: async ({ totalCostMicroUsd: _, ...record }) =>
      void (await db
        .update(volumes)
        .set({ ...record, revision: record.revision + 1 })
        .where(eq(volumes.id, record.id))),
    putAttachment: async (record) =>
      void (await db
        .insert(attachments)
        .values(record)
        .onConflictDoUpdate({
          target: [attachments.volumeId, attachments.deploymentId],
          set: { state: record.state },
        })),
    removeAttachment: async (volumeId, deploymentId) =>
      void (await db
        .delete(attachments)
        .where(and(eq(attachments.volumeId, volumeId), eq(attachments.deploymentId, deploymentId)))),
  };
}
