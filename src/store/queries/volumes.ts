import { and, asc, count, eq, inArray, isNotNull, isNull, lt, or, type SQL, sql } from 'drizzle-orm';
import type { VolumeReader, VolumeWriter } from '../../orchestrator/model/store.ts';
import type { Connection } from './connection.ts';
import { toPruned, unreferenced } from './instances.ts';
import { prepared } from './prepared.ts';
import { firstOf, upsert } from './rows.ts';

const volumeById = prepared(({ db, volumes, locking }: Connection, { id }: { id: string }) =>
  locking.rows(db.select().from(volumes).where(eq(volumes.id, id))),
);

const volumeByOwnerRef = prepared(
  ({ db, volumes, locking }: Connection, { ownerRef }: { ownerRef: string }) =>
    locking.rows(db.select().from(volumes).where(eq(volumes.ownerRef, ownerRef))),
);

const attachmentsOfVolume = prepared(({ db, attachments }: Connection, { volumeId }: { volumeId: string }) =>
  db.select().from(attachments).where(eq(attachments.volumeId, volumeId)),
);

const attachmentsOfInstance = prepared(
  ({ db, attachments }: Connection, { instanceId }: { instanceId: string }) =>
    db.select().from(attachments).where(eq(attachments.instanceId, instanceId)),
);

export function volumeReader(connection: Connection): VolumeReader {
  const { db, volumes } = connection;
  return {
    byId: (id) => firstOf(volumeById(connection, { id })),
    byOwnerRef: (ownerRef) => firstOf(volumeByOwnerRef(connection, { ownerRef })),
    attachmentsOfVolume: (volumeId) => attachmentsOfVolume(connection, { volumeId }),
    attachmentsOfInstance: (instanceId) => attachmentsOfInstance(connection, { instanceId }),
    liveOf: async (accountId) =>
      db
        .select({ id: volumes.id, platform: volumes.platform, ownerRef: volumes.ownerRef })
        .from(volumes)
        .where(and(eq(volumes.accountId, accountId), isNull(volumes.deletedAt)))
        .orderBy(asc(volumes.id)),
    countByPlatform: async () =>
      db
        .select({ platform: volumes.platform, count: count(), anId: sql<string>`min(${volumes.id})` })
        .from(volumes)
        .where(isNull(volumes.deletedAt))
        .groupBy(volumes.platform)
        .orderBy(volumes.platform),
    endedByPlatform: async () =>
      db
        .select({ platform: volumes.platform, count: count() })
        .from(volumes)
        .where(isNotNull(volumes.deletedAt))
        .groupBy(volumes.platform)
        .orderBy(volumes.platform),
  };
}

const prunable = prepared(
  (
    connection: Connection,
    { platform, endedBefore, limit }: { platform: string; endedBefore: number; limit: number },
  ) => {
    const { db, volumes, locking } = connection;
    const isOver = or(isNull(volumes.createOpenUntil), lt(volumes.createOpenUntil, endedBefore));
    // If the clock was ahead, a volume's creation time may be after its end. The mark must not pass volumes that are
    // created from now on.
    const isOld = and(lt(volumes.deletedAt, endedBefore), lt(volumes.createdAt, endedBefore));
    const hasEnded = and(eq(volumes.platform, platform), isNotNull(volumes.deletedAt), isOld, isOver);
    return locking.freeRows(
      db
        .select({ id: volumes.id })
        .from(volumes)
        .where(and(hasEnded, ...unneeded(connection)))
        .orderBy(asc(volumes.deletedAt))
        .limit(limit),
    );
  },
);

export function volumeWriter(connection: Connection): VolumeWriter {
  const { db, attachments, volumes } = connection;
  return {
    ...volumeReader(connection),
    insert: async (record) => {
      await db.insert(volumes).values(record);
    },
    update: async (record) => {
      await db.update(volumes).set(record).where(eq(volumes.id, record.id));
    },
    prune: async ({ platform, endedBefore, limit }) => {
      const found = await prunable(connection, { platform, endedBefore, limit });
      if (found.length === 0) return toPruned([]);
      // The rows are locked, so writes of other transactions for them are visible now.
      const among = inArray(
        volumes.id,
        found.map(({ id }) => id),
      );
      const { id, createdAt } = volumes;
      const deleted = db.delete(volumes).where(and(among, ...unneeded(connection)));
      return toPruned(await deleted.returning({ id, createdAt }));
    },
    putAttachment: (attachment) => upsert(connection, attachments, ['volumeId', 'instanceId'], attachment),
    removeAttachment: async (volumeId, instanceId) => {
      await db
        .delete(attachments)
        .where(and(eq(attachments.volumeId, volumeId), eq(attachments.instanceId, instanceId)));
    },
  };
}

/** Conditions that no work, storage claim or attachment refers to the volume. */
function unneeded(connection: Connection): SQL[] {
  const { attachments, storageClaims, volumes } = connection;
  return unreferenced(connection, volumes, [storageClaims.volumeId, attachments.volumeId]);
}
