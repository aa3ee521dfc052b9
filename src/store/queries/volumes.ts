import { and, count, eq, isNull, type SQL } from 'drizzle-orm';
import type { VolumeReader, VolumeWriter } from '../../orchestrator/ports/store.ts';
import type { VolumeRecord } from '../../orchestrator/volumes/volume-record.ts';
import type { Connection } from './connection.ts';

export function volumeReader({ db, tables: { attachments, volumes }, locking }: Connection): VolumeReader {
  const find = async (condition: SQL): Promise<VolumeRecord | null> =>
    (await locking.rows(db.select().from(volumes).where(condition)))[0] ?? null;
  return {
    byId: (id) => find(eq(volumes.id, id)),
    byOwnerRef: (ref) => find(eq(volumes.ownerRef, ref)),
    attachmentsOfVolume: async (volumeId) =>
      db.select().from(attachments).where(eq(attachments.volumeId, volumeId)),
    attachmentsOfInstance: async (instanceId) =>
      db.select().from(attachments).where(eq(attachments.instanceId, instanceId)),
    countLive: async () =>
      (await db.select({ count: count() }).from(volumes).where(isNull(volumes.deletedAt)))[0]?.count ?? 0,
  };
}

export function volumeWriter(connection: Connection): VolumeWriter {
  const {
    db,
    tables: { attachments, volumes },
  } = connection;
  return {
    ...volumeReader(connection),
    insert: async (record) => void (await db.insert(volumes).values(record)),
    update: async (record) => void (await db.update(volumes).set(record).where(eq(volumes.id, record.id))),
    putAttachment: async (attachment) =>
      void (await db
        .insert(attachments)
        .values(attachment)
        .onConflictDoUpdate({
          target: [attachments.volumeId, attachments.instanceId],
          set: { state: attachment.state },
        })),
    removeAttachment: async (volumeId, instanceId) =>
      void (await db
        .delete(attachments)
        .where(and(eq(attachments.volumeId, volumeId), eq(attachments.instanceId, instanceId)))),
  };
}
