import { and, asc, count, eq, inArray, type SQL, sql } from 'drizzle-orm';
import type { InstanceRecord } from '../../orchestrator/model/records.ts';
import type { InstanceReader, InstanceWriter } from '../../orchestrator/model/store.ts';
import type { Connection } from './connection.ts';
import { prepared } from './prepared.ts';

const instanceById = prepared(({ db, tables: { instances }, locking }: Connection, { id }: { id: string }) =>
  locking.rows(db.select().from(instances).where(eq(instances.id, id))),
);

export function instanceReader(connection: Connection): InstanceReader {
  const {
    db,
    tables: { instances },
    locking,
  } = connection;
  const find = async (condition: SQL): Promise<InstanceRecord | null> =>
    (await locking.rows(db.select().from(instances).where(condition)))[0] ?? null;
  /** The same text as the partial indexes' condition, so that they are used. */
  const isLive = sql`${instances.status} <> 'DESTROYED'`;
  // Compared as one row value, so that the index finds the first row.
  const isAfter = ({ createdAt, id }: Pick<InstanceRecord, 'createdAt' | 'id'>): SQL =>
    sql`(${instances.createdAt}, ${instances.id}) > (${createdAt}, ${id})`;
  return {
    byId: async (id) => {
      const [record] = await instanceById(connection, { id });
      return record ?? null;
    },
    byOwnerRef: (ref) => find(eq(instances.ownerRef, ref)),
    list: async ({ accountId, region }) => {
      const conditions: SQL[] = [isLive];
      if (accountId !== undefined) conditions.push(eq(instances.accountId, accountId));
      if (region !== undefined) conditions.push(eq(instances.region, region));
      return db
        .select()
        .from(instances)
        .where(and(...conditions))
        .orderBy(asc(instances.createdAt), asc(instances.id));
    },
    page: async ({ accountId, region, after, limit }) =>
      db
        .select()
        .from(instances)
        .where(
          and(
            isLive,
            eq(instances.accountId, accountId),
            region === undefined ? undefined : eq(instances.region, region),
            after === undefined ? undefined : isAfter(after),
          ),
        )
        .orderBy(asc(instances.createdAt), asc(instances.id))
        .limit(limit),
    countByStatus: async () =>
      db
        .select({ status: instances.status, count: count() })
        .from(instances)
        .where(isLive)
        .groupBy(instances.status),
  };
}

/** The rows that exist, tombstones included, in no order. */
export async function instancesByIds(
  { db, tables: { instances } }: Connection,
  ids: readonly string[],
): Promise<InstanceRecord[]> {
  return db
    .select()
    .from(instances)
    .where(inArray(instances.id, [...ids]));
}

export function instanceWriter(
  connection: Connection,
  onWrite: (record: InstanceRecord) => void,
): InstanceWriter {
  const {
    db,
    tables: { instances },
  } = connection;
  return {
    ...instanceReader(connection),
    insert: async (record) => {
      await db.insert(instances).values(record);
      onWrite(record);
    },
    update: async (record) => {
      await db.update(instances).set(record).where(eq(instances.id, record.id));
      onWrite(record);
    },
  };
}
