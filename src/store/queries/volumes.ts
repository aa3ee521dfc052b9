import { and, count, eq, isNull, type SQL } from 'drizzle-orm';
import type { VolumeReader, VolumeWriter } from '../../orchestrator/model/store.ts';
import type { Connection } from './connection.ts';
import { often } from './often.ts';

export function volumeReader(connection: Connection): VolumeReader {
  const {
    db,
    tables: { attachments, volumes },
    locking,
  } = connection;
  const find = (condition: SQL) => locking.rows(db.select().from(volumes).where(condition));
  return {
    byId: async (id) =>
      (await often(connection, 'volume', { id }, (values) => find(eq(volumes.id, values.id))))[0] ?? null,
    byOwnerRef: async (ref) => (await find(eq(volumes.ownerRef, ref)))[0] ?? null,
    attachmentsOfVolume: (volumeId) =>
      often(connection, 'attachments of volume', { volumeId }, (values) =>
        db.select().from(attachments).where(eq(attachments.volumeId, values.volumeId)),
      ),
    attachmentsOfInstance: (instanceId) =>
      often(connection, 'attachments of instance', { instanceId }, (values) =>
        db.select().from(attachments).where(eq(attachments.instanceId, values.instanceId)),
      ),
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
