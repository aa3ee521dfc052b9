import { and, eq } from 'drizzle-orm';
import type { VolumeReader, VolumeWriter } from '../../orchestrator/ports/store.ts';
import type { Db } from './db.ts';
import { attachments, volumes } from './schema.ts';

export function volumeReader(db: Db): VolumeReader {
  return {
    byId: async (id) => db.select().from(volumes).where(eq(volumes.id, id)).get() ?? null,
    byOwnerRef: async (ref) => db.select().from(volumes).where(eq(volumes.ownerRef, ref)).get() ?? null,
    attachmentsOfVolume: async (volumeId) =>
      db.select().from(attachments).where(eq(attachments.volumeId, volumeId)).all(),
    attachmentsOfInstance: async (instanceId) =>
      db.select().from(attachments).where(eq(attachments.instanceId, instanceId)).all(),
  };
}

export function volumeWriter(db: Db): VolumeWriter {
  return {
    ...volumeReader(db),
    insert: async (record) => void db.insert(volumes).values(record).run(),
    update: async (record) => void db.update(volumes).set(record).where(eq(volumes.id, record.id)).run(),
    putAttachment: async (attachment) =>
      void db
        .insert(attachments)
        .values(attachment)
        .onConflictDoUpdate({
          target: [attachments.volumeId, attachments.instanceId],
          set: { state: attachment.state },
        })
        .run(),
    removeAttachment: async (volumeId, instanceId) =>
      void db
        .delete(attachments)
        .where(and(eq(attachments.volumeId, volumeId), eq(attachments.instanceId, instanceId)))
        .run(),
  };
}
