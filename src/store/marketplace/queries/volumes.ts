import { and, asc, count, desc, eq, inArray, isNotNull, type SQL, sql } from 'drizzle-orm';
import type { VolumeReader, VolumeWriter } from '../../../marketplace/model/store.ts';
import type {
  AttachmentRecord,
  VolumeRecord,
  VolumeUsage,
} from '../../../marketplace/model/volume-record.ts';
import { prepared, preparedWrite } from '../../queries/prepared.ts';
import { firstOf, upsert } from '../../queries/rows.ts';
import type { Connection } from './connection.ts';

const volumeById = prepared(({ db, volumes, locking }: Connection, { id }: { id: string }) =>
  locking.rows(db.select().from(volumes).where(eq(volumes.id, id))),
);

const volumesByProviderVolume = prepared(
  ({ db, volumes }: Connection, { provider, volume }: { provider: string; volume: string }) =>
    db
      .select()
      .from(volumes)
      .where(and(eq(volumes.providerVolumeId, volume), eq(volumes.providerId, provider)))
      .orderBy(asc(volumes.createdAt), asc(volumes.id)),
);

const volumesOfTeam = prepared(({ db, volumes }: Connection, { teamId }: { teamId: string }) =>
  db
    .select()
    .from(volumes)
    .where(and(eq(volumes.teamId, teamId), isLive(volumes)))
    .orderBy(asc(volumes.createdAt), asc(volumes.id)),
);

const volumesToSync = prepared((connection: Connection, { provider }: { provider: string }) =>
  idsAtProvider(connection, provider, isLive(connection.volumes)),
);

const newVolumesToSync = prepared((connection: Connection, { provider }: { provider: string }) =>
  idsAtProvider(connection, provider, needsSync(connection)),
);

const volumesInTransit = prepared(({ db, attachments }: Connection) =>
  db.select({ id: attachments.volumeId }).from(attachments).where(sql`${attachments.state} <> 'attached'`),
);

function idsAtProvider({ db, volumes }: Connection, provider: string, condition: SQL) {
  return db
    .select({ id: volumes.id })
    .from(volumes)
    .where(and(eq(volumes.providerId, provider), condition))
    .orderBy(asc(volumes.id));
}

const attachmentsOfVolume = prepared(({ db, attachments }: Connection, { volumeId }: { volumeId: string }) =>
  db
    .select()
    .from(attachments)
    .where(eq(attachments.volumeId, volumeId))
    .orderBy(asc(attachments.volumeId), asc(attachments.deploymentId)),
);

export function volumeReader(connection: Connection): VolumeReader {
  const { db, volumes, locking } = connection;
  const find = (condition: SQL): Promise<VolumeRecord | null> =>
    firstOf(locking.rows(db.select().from(volumes).where(condition)));
  const countLive = async (...conditions: SQL[]) =>
    db
      .select({ providerId: volumes.providerId, count: count() })
      .from(volumes)
      .where(and(isLive(volumes), ...conditions))
      .groupBy(volumes.providerId)
      .orderBy(asc(volumes.providerId));
  return {
    byId: (id) => firstOf(volumeById(connection, { id })),
    byVolumeId: (volumeId) => find(eq(volumes.volumeId, volumeId)),
    byProviderVolume: (provider, volume) => volumesByProviderVolume(connection, { provider, volume }),
    ofTeam: (teamId) => volumesOfTeam(connection, { teamId }),
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
    toSync: async (provider) => (await volumesToSync(connection, { provider })).map(({ id }) => id),
    newToSync: async (provider) => {
      const ids = (await volumesInTransit(connection, {})).map(({ id }) => id);
      const inTransit =
        ids.length === 0 ? [] : await idsAtProvider(connection, provider, inArray(volumes.id, ids));
      const found = [...(await newVolumesToSync(connection, { provider })), ...inTransit];
      return [...new Set(found.map(({ id }) => id))];
    },
    countByProvider: () => countLive(),
    countOfOtherSize: () => countLive(isNotNull(volumes.providerSizeGb)),
    attachmentsOf: (wanted) => attachmentsOf(connection, wanted),
  };
}

type AttachmentsWanted = Parameters<VolumeReader['attachmentsOf']>[0];

async function attachmentsOf(
  connection: Connection,
  { volumeId, deploymentId }: AttachmentsWanted,
): Promise<AttachmentRecord[]> {
  const { db, attachments } = connection;
  const select = (...conditions: SQL[]) =>
    db
      .select()
      .from(attachments)
      .where(and(...conditions))
      .orderBy(asc(attachments.volumeId), asc(attachments.deploymentId));
  if (volumeId !== undefined && deploymentId === undefined)
    return attachmentsOfVolume(connection, { volumeId });
  return select(
    ...(volumeId === undefined ? [] : [eq(attachments.volumeId, volumeId)]),
    ...(deploymentId === undefined ? [] : [eq(attachments.deploymentId, deploymentId)]),
  );
}

/** The same text as the partial indexes' condition, so that they are used. */
export function isLive({ status }: Connection['volumes']): SQL {
  return sql`${status} <> 'deleted'`;
}

/** The same text as the partial index's condition, so that the index is used. */
function needsSync({ volumes }: Connection): SQL {
  return sql`(${volumes.action} IS NOT NULL OR ${volumes.cleanup} = 'wanted' OR ${volumes.status} = 'creating')`;
}

const recordUsage = preparedWrite(
  (
    { db, volumes }: Connection,
    { providerId, volume, usage }: { providerId: string; volume: string; usage: VolumeUsage },
  ) =>
    db
      .update(volumes)
      .set({ usage })
      .where(and(eq(volumes.providerVolumeId, volume), eq(volumes.providerId, providerId), isLive(volumes))),
);

/** `changed` is called with the id of each written row. */
export function volumeWriter(connection: Connection, changed: (id: string) => void): VolumeWriter {
  const { db, attachments, volumes } = connection;
  return {
    ...volumeReader(connection),
    insert: async (record) => {
      changed(record.id);
      await db.insert(volumes).values(record);
    },
    // Only the ledger writes the total cost.
    update: async ({ totalCostMicroUsd: _, ...record }) => {
      changed(record.id);
      await db
        .update(volumes)
        .set({ ...record, revision: record.revision + 1 })
        .where(eq(volumes.id, record.id));
    },
    recordObservation: async (id, observedAt) => {
      changed(id);
      await db.update(volumes).set({ observedAt }).where(eq(volumes.id, id));
    },
    recordUsage: async (providerId, all) => {
      for (const [volume, usage] of all) await recordUsage(connection, { providerId, volume, usage });
    },
    putAttachment: (attachment) => upsert(connection, attachments, ['volumeId', 'deploymentId'], attachment),
    removeAttachment: async (volumeId, deploymentId) =>
      void (await db
        .delete(attachments)
        .where(and(eq(attachments.volumeId, volumeId), eq(attachments.deploymentId, deploymentId)))),
  };
}
