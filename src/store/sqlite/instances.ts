import { and, asc, count, eq, ne, type SQL } from 'drizzle-orm';
import type { InstanceRecord } from '../../orchestrator/instances/instance-record.ts';
import type { InstanceReader, InstanceWriter } from '../../orchestrator/ports/store.ts';
import type { Db } from './db.ts';
import { instances } from './schema.ts';

export function instanceReader(db: Db): InstanceReader {
  return {
    byId: async (id) => db.select().from(instances).where(eq(instances.id, id)).get() ?? null,
    byOwnerRef: async (ref) => db.select().from(instances).where(eq(instances.ownerRef, ref)).get() ?? null,
    list: async ({ accountId, region }) => {
      const conditions: SQL[] = [ne(instances.status, 'DESTROYED')];
      if (accountId !== undefined) conditions.push(eq(instances.accountId, accountId));
      if (region !== undefined) conditions.push(eq(instances.region, region));
      return db
        .select()
        .from(instances)
        .where(and(...conditions))
        .orderBy(asc(instances.createdAt), asc(instances.id))
        .all();
    },
    countByStatus: async () =>
      db
        .select({ status: instances.status, count: count() })
        .from(instances)
        .where(ne(instances.status, 'DESTROYED'))
        .groupBy(instances.status)
        .all(),
  };
}

export function instanceWriter(db: Db, onWrite: (record: InstanceRecord) => void): InstanceWriter {
  return {
    ...instanceReader(db),
    insert: async (record) => {
      db.insert(instances).values(record).run();
      onWrite(record);
    },
    update: async (record) => {
      db.update(instances).set(record).where(eq(instances.id, record.id)).run();
      onWrite(record);
    },
  };
}
