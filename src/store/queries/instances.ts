import {
  and,
  asc,
  count,
  desc,
  eq,
  exists,
  inArray,
  isNull,
  lt,
  notExists,
  or,
  type SQL,
  sql,
} from 'drizzle-orm';
import type { PgColumn, PgTable } from 'drizzle-orm/pg-core';
import type { Pruned } from '../../orchestrator/model/attempt.ts';
import type { InstanceRecord } from '../../orchestrator/model/records.ts';
import type { InstanceReader, InstanceSearch, InstanceWriter } from '../../orchestrator/model/store.ts';
import { type Connection, contains } from './connection.ts';
import { asEncoded, encodeRow } from './encoded-row.ts';
import { prepared, preparedWrite } from './prepared.ts';
import { firstOf } from './rows.ts';

const instanceById = prepared(({ db, instances, locking }: Connection, { id }: { id: string }) =>
  locking.rows(db.select().from(instances).where(eq(instances.id, id))),
);

const instanceByOwnerRef = prepared(
  ({ db, instances, locking }: Connection, { ownerRef }: { ownerRef: string }) =>
    locking.rows(db.select().from(instances).where(eq(instances.ownerRef, ownerRef))),
);

/** The same text as the condition of the partial indexes, so that they are used. */
const isLive = ({ status }: Connection['instances']): SQL => sql`${status} <> 'DESTROYED'`;

interface PageValues {
  accountId: string;
  afterCreatedAt: number;
  afterId: string;
  limit: number;
}

/** A position before every instance: the bound of a first page. */
const FIRST = { accountId: '', createdAt: -1, id: '' };

function pageOf({ db, instances }: Connection, of: PageValues & { region?: string }) {
  const { accountId, region, afterCreatedAt, afterId, limit } = of;
  return db
    .select({ id: instances.id, createdAt: instances.createdAt })
    .from(instances)
    .where(
      and(
        isLive(instances),
        eq(instances.accountId, accountId),
        region === undefined ? undefined : eq(instances.region, region),
        // The position is compared as one row value, so that the index finds the first row.
        sql`(${instances.createdAt}, ${instances.id}) > (${afterCreatedAt}, ${afterId})`,
      ),
    )
    .orderBy(asc(instances.createdAt), asc(instances.id))
    .limit(limit);
}

const pageOfAccount = prepared((connection: Connection, of: PageValues) => pageOf(connection, of));

const pageOfRegion = prepared((connection: Connection, of: PageValues & { region: string }) =>
  pageOf(connection, of),
);

interface LivePageValues {
  afterAccountId: string;
  afterCreatedAt: number;
  afterId: string;
  limit: number;
}

const pageOfLive = prepared(
  ({ db, instances }: Connection, { afterAccountId, afterCreatedAt, afterId, limit }: LivePageValues) => {
    const { id, accountId, createdAt, ownerRef, status, endpoint, updatedAt, version } = instances;
    const { createOpenUntil, platform, host } = instances;
    const shown = { id, accountId, createdAt, ownerRef, status, endpoint, updatedAt, version };
    return db
      .select({ ...shown, createOpenUntil, platform, host })
      .from(instances)
      .where(
        and(
          isLive(instances),
          sql`(${accountId}, ${createdAt}, ${id}) > (${afterAccountId}, ${afterCreatedAt}, ${afterId})`,
        ),
      )
      .orderBy(asc(accountId), asc(createdAt), asc(id))
      .limit(limit);
  },
);

/**
 * Searches the fields that operators see. The history is searched only for failed instances, so that the rest of it is
 * not read.
 */
function hasText(connection: Connection, part: string): SQL | undefined {
  const { db, instances, history } = connection;
  const { id, name, ownerRef, error, endpoint, status } = instances;
  const { instanceId, toStatus, detail } = history;
  const texts = [id, name, ownerRef, error, sql`cast(${endpoint} as text)`];
  const ends = db
    .select({ id: instanceId })
    .from(history)
    .where(and(eq(instanceId, id), eq(toStatus, 'ERROR'), contains(connection, detail, part)));
  return or(...texts.map((text) => contains(connection, text, part)), and(eq(status, 'ERROR'), exists(ends)));
}

function isFound(connection: Connection, of: InstanceSearch): SQL | undefined {
  const { id, accountId, status, offerId, region, platform, host, name } = connection.instances;
  return and(
    isLive(connection.instances),
    of.accountId === undefined ? undefined : eq(accountId, of.accountId),
    of.status === undefined ? undefined : eq(status, of.status),
    of.offerId === undefined ? undefined : eq(offerId, of.offerId),
    of.region === undefined ? undefined : eq(region, of.region),
    of.platform === undefined ? undefined : eq(platform, of.platform),
    of.host === undefined ? undefined : eq(host, of.host),
    of.name === undefined ? undefined : eq(name, of.name),
    of.idPrefix === undefined ? undefined : sql`substr(${id}, 1, ${of.idPrefix.length}) = ${of.idPrefix}`,
    of.text === undefined ? undefined : hasText(connection, of.text),
  );
}

export function instanceReader(connection: Connection): InstanceReader {
  const { db, instances } = connection;
  return {
    byId: (id) => firstOf(instanceById(connection, { id })),
    byOwnerRef: (ownerRef) => firstOf(instanceByOwnerRef(connection, { ownerRef })),
    list: async ({ accountId, region }) => {
      const conditions: SQL[] = [isLive(instances)];
      if (accountId !== undefined) conditions.push(eq(instances.accountId, accountId));
      if (region !== undefined) conditions.push(eq(instances.region, region));
      return db
        .select()
        .from(instances)
        .where(and(...conditions))
        .orderBy(asc(instances.createdAt), asc(instances.id));
    },
    search: async ({ order, after, limit, ...of }) => {
      const { createdAt, id } = instances;
      const [by, comparison] = order === 'oldest' ? [asc, sql`>`] : [desc, sql`<`];
      return db
        .select()
        .from(instances)
        .where(
          and(
            isFound(connection, of),
            // The position is compared as one row value, so that the index finds the first row.
            after && sql`(${createdAt}, ${id}) ${comparison} (${after.createdAt}, ${after.id})`,
          ),
        )
        .orderBy(by(createdAt), by(id))
        .limit(limit);
    },
    countFound: async (of) => {
      const found = await db.select({ count: count() }).from(instances).where(isFound(connection, of));
      return found[0]?.count ?? 0;
    },
    byIds: (ids) => instancesByIds(connection, ids),
    page: ({ accountId, region, after = FIRST, limit }) => {
      const of = { accountId, limit, afterCreatedAt: after.createdAt, afterId: after.id };
      return region === undefined
        ? pageOfAccount(connection, of)
        : pageOfRegion(connection, { ...of, region });
    },
    livePage: ({ after = FIRST, limit }) =>
      pageOfLive(connection, {
        limit,
        afterAccountId: after.accountId,
        afterCreatedAt: after.createdAt,
        afterId: after.id,
      }),
    countByStatus: async (of) =>
      db
        .select({ status: instances.status, count: count() })
        .from(instances)
        .where(
          and(
            isLive(instances),
            of && eq(instances.platform, of.platform),
            of?.host === undefined ? undefined : eq(instances.host, of.host),
          ),
        )
        .groupBy(instances.status),
    countByPlacement: async () => {
      const { offerId, region, status, priceMicroUsdPerHour } = instances;
      const price = sql<number>`sum(${priceMicroUsdPerHour})`.mapWith(Number);
      return db
        .select({ offerId, region, status, count: count(), priceMicroUsdPerHour: price })
        .from(instances)
        .where(isLive(instances))
        .groupBy(offerId, region, status);
    },
    countByPlatform: async () =>
      db
        .select({ platform: instances.platform, count: count(), anId: sql<string>`min(${instances.id})` })
        .from(instances)
        .where(isLive(instances))
        .groupBy(instances.platform)
        .orderBy(instances.platform),
    countByHost: async () => {
      const { platform, host, status } = instances;
      return db
        .select({ platform, host, status, count: count() })
        .from(instances)
        .where(isLive(instances))
        .groupBy(platform, host, status)
        .orderBy(platform, host, status);
    },
    countByAccount: async () => {
      const { accountId } = instances;
      return db
        .select({ accountId, count: count() })
        .from(instances)
        .where(isLive(instances))
        .groupBy(accountId)
        .orderBy(accountId);
    },
    endedByPlatform: async () =>
      db
        .select({ platform: instances.platform, count: count() })
        .from(instances)
        .where(eq(instances.status, 'DESTROYED'))
        .groupBy(instances.platform)
        .orderBy(instances.platform),
  };
}

/** The existing rows, including tombstones, in no order. */
export async function instancesByIds(
  { db, instances }: Connection,
  ids: readonly string[],
): Promise<InstanceRecord[]> {
  return db
    .select()
    .from(instances)
    .where(inArray(instances.id, [...ids]));
}

const insertInstance = preparedWrite(({ db, instances }: Connection, row: InstanceRecord) =>
  db.insert(instances).values(asEncoded(row)),
);

const updateInstance = preparedWrite(({ db, instances }: Connection, { id, ...row }: InstanceRecord) =>
  db.update(instances).set(asEncoded(row)).where(eq(instances.id, id)),
);

const prunable = prepared(
  (
    connection: Connection,
    { platform, endedBefore, limit }: { platform: string; endedBefore: number; limit: number },
  ) => {
    const { db, instances, locking } = connection;
    const isOver = or(isNull(instances.createOpenUntil), lt(instances.createOpenUntil, endedBefore));
    return locking.freeRows(
      db
        .select({ id: instances.id })
        .from(instances)
        // The same text as the partial index's condition, so that it is used.
        .where(
          and(
            sql`${instances.status} = 'DESTROYED'`,
            eq(instances.platform, platform),
            lt(instances.updatedAt, endedBefore),
            isOver,
            ...unneeded(connection),
          ),
        )
        .orderBy(asc(instances.updatedAt))
        .limit(limit),
    );
  },
);

export function instanceWriter(connection: Connection, written: Map<string, InstanceRecord>): InstanceWriter {
  const { db, instances, losses } = connection;
  return {
    ...instanceReader(connection),
    insert: async (record) => {
      await insertInstance(connection, encodeRow(instances, record));
      written.set(record.id, record);
    },
    update: async (record) => {
      await updateInstance(connection, encodeRow(instances, record));
      written.set(record.id, record);
    },
    hasWritten: (id) => written.has(id),
    prune: async ({ platform, endedBefore, limit }) => {
      const found = await prunable(connection, { platform, endedBefore, limit });
      if (found.length === 0) return toPruned([]);
      // The rows are locked, so writes of other transactions for them are visible now.
      const isFree = and(inArray(instances.id, ids(found)), ...unneeded(connection));
      const free = await db.select({ id: instances.id }).from(instances).where(isFree);
      await db.delete(losses).where(inArray(losses.instanceId, ids(free)));
      const { id, createdAt } = instances;
      const deleted = db.delete(instances).where(inArray(id, ids(free)));
      return toPruned(await deleted.returning({ id, createdAt }));
    },
  };
}

const ids = (rows: readonly { id: string }[]): string[] => rows.map(({ id }) => id);

/** Conditions that no work, unit or attachment refers to the instance. */
function unneeded(connection: Connection): SQL[] {
  const { attachments, claims, instances } = connection;
  return unreferenced(connection, instances, [claims.instanceId, attachments.instanceId]);
}

/**
 * Conditions of a prunable row: no work refers to it, none of the columns `referring` does, and no Idempotency-Key that
 * may be sent again does.
 */
export function unreferenced(
  { db, idempotency, work }: Connection,
  { id, createdAt }: Connection['instances'] | Connection['volumes'],
  referring: readonly PgColumn[],
): SQL[] {
  const noRow = (table: PgTable, condition: SQL | undefined): SQL =>
    notExists(db.select({ one: sql`1` }).from(table).where(condition));
  // A key has the age of its resource, and an index by age exists.
  const isKept = and(eq(idempotency.createdAt, createdAt), eq(idempotency.resourceId, id));
  return [
    ...[work.resourceId, ...referring].map((column) => noRow(column.table, eq(column, id))),
    noRow(idempotency, isKept),
  ];
}

export function toPruned(deleted: readonly { id: string; createdAt: number }[]): Pruned {
  const newestCreatedAt =
    deleted.length === 0 ? null : Math.max(...deleted.map(({ createdAt }) => createdAt));
  return { ids: ids(deleted), newestCreatedAt };
}
