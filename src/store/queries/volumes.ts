import { and, count, eq, isNull } from 'drizzle-orm';
import type { VolumeReader, VolumeWriter } from '../../orchestrator/model/store.ts';
import type { Connection } from './connection.ts';
import { prepared } from './prepared.ts';

const volumeById = prepared(({ db, tables: { volumes }, locking }: Connection, { id }: { id: string }) =>
  locking.rows(db.select().from(volumes).where(eq(volumes.id, id))),
);

const attachmentsOfVolume = prepared(
  ({ db, tables: { attachments } }: Connection, { volumeId }: { volumeId: string }) =>
    db.select().from(attachments).where(eq(attachments.volumeId, volumeId)),
);

const attachmentsOfInstance = prepared(
  ({ db, tables: { attachments } }: Connection, { instanceId }: { instanceId: string }) =>
    db.select().from(attachments).where(eq(attachments.instanceId, instanceId)),
);

export function volumeReader(connection: Connection): VolumeReader {
  const {
    db,
    tables: { volumes },
    locking,
  } = connection;
  return {
    byId: async (id) => (await volumeById(connection, { id }))[0] ?? null,
    byOwnerRef: async (ref) =>
      (await locking.rows(db.select().from(volumes).where(eq(volumes.ownerRef, ref))))[0] ?? null,
    attachmentsOfVolume: (volumeId) => attachmentsOfVolume(connection, { volumeId }),
    attachmentsOfInstance: (instanceId) => attachmentsOfInstance(connection, { instanceId }),
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
