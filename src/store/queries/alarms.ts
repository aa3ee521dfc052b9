import {
  and,
  asc,
  desc,
  eq,
  gt,
  gte,
  inArray,
  isNotNull,
  isNull,
  lt,
  lte,
  or,
  type SQL,
  sql,
} from 'drizzle-orm';
import { compareNames } from '../../contract/compare-names.ts';
import type {
  AlarmReader,
  AlarmRecord,
  AlarmWriter,
  NoticeKey,
  NoticeReader,
  NoticeWriter,
} from '../../operator-kit/alarms/model.ts';
import type { operatorTables } from '../schema/operators.ts';
import type { Connection as AnyConnection } from './connection.ts';
import { prepared } from './prepared.ts';
import { upsert } from './rows.ts';

/** A connection to the database of either product. */
type Connection = AnyConnection<ReturnType<typeof operatorTables>>;

const allAlarms = prepared(({ db, alarms }: Connection, _values: object) => db.select().from(alarms));

export function alarmReader(connection: Connection): AlarmReader {
  const { db, endedAlarms } = connection;
  return {
    list: async () => {
      const found = await allAlarms(connection, {});
      return found.sort(
        (a, b) => a.since - b.since || compareNames(a.kind, b.kind) || compareNames(a.subject, b.subject),
      );
    },
    ended: async ({ by, from, to, limit, ...of }) =>
      db
        .select()
        .from(endedAlarms)
        .where(
          and(
            gte(endedAlarms[by], from),
            lte(endedAlarms[by], to),
            ...(['kind', 'subject', 'platform'] as const).map((name) => {
              const value = of[name];
              return value === undefined ? undefined : eq(endedAlarms[name], value);
            }),
          ),
        )
        .orderBy(desc(endedAlarms[by]), desc(endedAlarms.id))
        .limit(limit),
  };
}

export function alarmWriter(connection: Connection): AlarmWriter {
  const { db, alarms, endedAlarms } = connection;
  const end = async (which: SQL | undefined, until: number): Promise<void> => {
    const ended: AlarmRecord[] = await db.delete(alarms).where(which).returning();
    for (const { lastSeenAt: _, ...alarm } of ended) await db.insert(endedAlarms).values({ ...alarm, until });
  };
  return {
    ...alarmReader(connection),
    put: async (alarm) => {
      await upsert(connection, alarms, ['kind', 'subject'], alarm, [
        'platform',
        'since',
        'acknowledgedBy',
        'note',
      ]);
      // An alarm that another server still sees had not ended.
      const { kind, subject, since } = alarm;
      await db
        .delete(endedAlarms)
        .where(
          and(eq(endedAlarms.since, since), eq(endedAlarms.kind, kind), eq(endedAlarms.subject, subject)),
        );
    },
    end: ({ kind, subject }, at) => end(and(eq(alarms.kind, kind), eq(alarms.subject, subject)), at),
    acknowledge: async ({ kind, subject }, acknowledgedBy, note) =>
      db
        .update(alarms)
        .set(note === null ? { acknowledgedBy } : { acknowledgedBy, note })
        .where(and(eq(alarms.kind, kind), subject === undefined ? undefined : eq(alarms.subject, subject)))
        .returning(),
    endSeenBefore: (time, kinds, at) =>
      end(and(lt(alarms.lastSeenAt, time), inArray(alarms.kind, [...kinds])), at),
    pruneOldest: async (before, limit) => {
      const oldest = db
        .select({ id: endedAlarms.id })
        .from(endedAlarms)
        .orderBy(asc(endedAlarms.until))
        .limit(limit);
      const deleted = await db
        .delete(endedAlarms)
        .where(and(inArray(endedAlarms.id, oldest), lt(endedAlarms.until, before)))
        .returning({ id: endedAlarms.id });
      return deleted.length;
    },
  };
}

export function noticeReader({ db, alarmNotices }: Connection): NoticeReader {
  return {
    open: async () => db.select().from(alarmNotices).where(isNull(alarmNotices.until)),
    dueRoutes: async ({ now, latest }) => {
      const { route, dueAt } = alarmNotices;
      const isDue = or(lte(dueAt, now), gt(dueAt, latest));
      return (await db.selectDistinct({ route }).from(alarmNotices).where(isDue)).map((row) => row.route);
    },
  };
}

export function noticeWriter(connection: Connection): NoticeWriter {
  const { db, alarmNotices: notices } = connection;
  const { route, kind, subject, since, until, told, dueAt, attempts } = notices;
  const isOf = (of: NoticeKey): SQL | undefined =>
    and(eq(route, of.route), eq(kind, of.kind), eq(subject, of.subject), eq(since, of.since));
  return {
    ...noticeReader(connection),
    add: async (notice) => {
      const isTold = eq(told, 'began');
      const reopened = {
        ...notice,
        told: sql`CASE WHEN ${isTold} THEN 'began' ELSE 'nothing' END`,
        dueAt: sql`CASE WHEN ${isTold} THEN NULL ELSE excluded.due_at END`,
      };
      await db
        .insert(notices)
        .values(notice)
        .onConflictDoUpdate({
          target: [route, kind, subject, since],
          set: reopened,
          setWhere: isNotNull(until),
        });
    },
    end: async (of, at) =>
      void (await db
        .update(notices)
        .set({ ...at, attempts: 0 })
        .where(and(isOf(of), isNull(until)))),
    claim: async ({ route: name, now, latest, claimedUntil }) => {
      const isUntried = and(isNotNull(dueAt), eq(attempts, 0));
      const isGivenUp = and(isNull(dueAt), gt(attempts, 0));
      return db
        .update(notices)
        .set({ dueAt: claimedUntil, attempts: sql`${attempts} + 1` })
        .where(and(eq(route, name), or(lte(dueAt, now), gt(dueAt, latest), isUntried, isGivenUp)))
        .returning();
    },
    settle: async (of, { dueAt: next, ...outcome }) =>
      void (await db
        .update(notices)
        .set({ ...outcome, dueAt: sql`CASE WHEN ${dueAt} = ${of.dueAt} THEN ${next} ELSE ${dueAt} END` })
        .where(isOf(of))),
    deleteEndedBefore: async (time) => void (await db.delete(notices).where(lt(until, time))),
  };
}
