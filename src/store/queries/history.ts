import { and, asc, desc, eq, getTableColumns, gte, inArray, lt, lte, sql } from 'drizzle-orm';
import type { HistoryEvent, HistoryReader, HistoryWriter } from '../../orchestrator/model/history.ts';
import type { Connection } from './connection.ts';
import { prepared, preparedWrite } from './prepared.ts';

/** History events added by a transaction, by instance. */
export type AddedHistory = Map<string, HistoryEvent>;

const insertEvent = preparedWrite(({ db, history }: Connection, event: HistoryEvent) =>
  db.insert(history).values(event),
);

const replaceNewest = preparedWrite(
  (
    { db, history }: Connection,
    { instanceId, ...tried }: Pick<HistoryEvent, 'instanceId' | 'at' | 'attempt' | 'calls' | 'tookMs'>,
  ) =>
    db
      .update(history)
      .set(tried)
      .where(
        eq(
          history.id,
          sql`(SELECT max(${history.id}) FROM ${history} WHERE ${history.instanceId} = ${instanceId})`,
        ),
      ),
);

/** Writes the added events. It is the transaction's last statement. */
export async function writeHistory(connection: Connection, added: AddedHistory): Promise<void> {
  for (const event of added.values()) await insertEvent(connection, event);
}

export function historyReader({ db, history, instances }: Connection): HistoryReader {
  return {
    outcomes: async ({ since, limit }) => {
      const { id, instanceId, at, cause, fromStatus, toStatus, calls } = history;
      const { createdAt, platform, offerId, region } = instances;
      const instance = { createdAt, platform, offerId, region };
      return db
        .select({ instanceId, at, cause, fromStatus, toStatus, calls, instance })
        .from(history)
        .leftJoin(instances, eq(instances.id, instanceId))
        .where(and(sql`(${fromStatus} = 'PROVISIONING' OR ${toStatus} = 'ERROR')`, gte(at, since)))
        .orderBy(desc(at), desc(id))
        .limit(limit);
    },
    of: async (instanceId) => {
      const rows = await db
        .select()
        .from(history)
        .where(eq(history.instanceId, instanceId))
        .orderBy(asc(history.id));
      return rows.map(({ id: _, ...event }) => event);
    },
    between: async ({ from, to, limit, instanceId, ...of }) => {
      const placed = (['host', 'platform', 'accountId'] as const).flatMap((name) => {
        const value = of[name];
        return value === undefined ? [] : [eq(instances[name], value)];
      });
      const rows = await db
        .select(getTableColumns(history))
        .from(history)
        .leftJoin(instances, eq(instances.id, history.instanceId))
        .where(
          and(
            gte(history.at, from),
            lte(history.at, to),
            instanceId === undefined
              ? sql`${history.toStatus} IS DISTINCT FROM ${history.fromStatus}`
              : eq(history.instanceId, instanceId),
            ...placed,
          ),
        )
        .orderBy(desc(history.at), desc(history.id))
        .limit(limit);
      return rows.map(({ id: _, ...event }) => event);
    },
    newest: async (instanceId, limit) => {
      const rows = await db
        .select()
        .from(history)
        .where(eq(history.instanceId, instanceId))
        .orderBy(desc(history.id))
        .limit(limit);
      return rows.map(({ id: _, ...event }) => event);
    },
  };
}

const pruneOldest = prepared(
  ({ db, history }: Connection, { before, limit }: { before: number; limit: number }) => {
    const oldest = db.select({ id: history.id }).from(history).orderBy(asc(history.id)).limit(limit);
    return db
      .delete(history)
      .where(and(inArray(history.id, oldest), lt(history.at, before)))
      .returning({ id: history.id });
  },
);

export function historyWriter(connection: Connection, added: AddedHistory): HistoryWriter {
  return {
    ...historyReader(connection),
    moved: async (moved) => {
      const { instanceId } = moved;
      // Of two changes in one transaction, the first has the original status.
      const { fromStatus } = added.get(instanceId) ?? moved;
      added.set(instanceId, { ...notAStep, ...moved, fromStatus: fromStatus ?? moved.fromStatus });
    },
    requested: async ({ instanceId, what: detail, at, by = null }) => {
      const known = added.get(instanceId) ?? { ...notAStep, fromStatus: null, toStatus: null };
      added.set(instanceId, { ...known, instanceId, at, cause: 'request', detail, by });
    },
    step: async (step, as) => {
      const { instanceId, at, attempt, calls, tookMs } = step;
      const moved = added.get(instanceId);
      if (moved === undefined && as === 'omit') return;
      if (moved === undefined && as === 'replacement')
        return replaceNewest(connection, { instanceId, at, attempt, calls, tookMs });
      const { fromStatus = null, toStatus = null, detail = null, by = null } = moved ?? {};
      added.set(instanceId, { ...step, fromStatus, toStatus, detail: step.detail ?? detail, by });
    },
    pruneOldest: async (before, limit) => (await pruneOldest(connection, { before, limit })).length,
  };
}

const notAStep = { attempt: null, next: null, calls: [], console: null, tookMs: null, by: null };
