import { and, eq, inArray, lt } from 'drizzle-orm';
import { compareNames } from '../../contract/compare-names.ts';
import type { AlarmReader, AlarmWriter } from '../../orchestrator/model/alarm.ts';
import type { Connection } from './connection.ts';
import { prepared } from './prepared.ts';
import { upsert } from './rows.ts';

const allAlarms = prepared(({ db, alarms }: Connection, _values: object) => db.select().from(alarms));

export function alarmReader(connection: Connection): AlarmReader {
  return {
    list: async () => {
      const found = await allAlarms(connection, {});
      return found.sort(
        (a, b) => a.since - b.since || compareNames(a.kind, b.kind) || compareNames(a.subject, b.subject),
      );
    },
  };
}

export function alarmWriter(connection: Connection): AlarmWriter {
  const { db, alarms } = connection;
  return {
    ...alarmReader(connection),
    put: (alarm) =>
      upsert(connection, alarms, ['kind', 'subject'], alarm, ['platform', 'since', 'acknowledgedBy']),
    remove: async ({ kind, subject }) =>
      void (await db.delete(alarms).where(and(eq(alarms.kind, kind), eq(alarms.subject, subject)))),
    acknowledge: async ({ kind, subject }, acknowledgedBy) =>
      db
        .update(alarms)
        .set({ acknowledgedBy })
        .where(and(eq(alarms.kind, kind), subject === undefined ? undefined : eq(alarms.subject, subject)))
        .returning(),
    removeSeenBefore: async (time, kinds) =>
      void (await db
        .delete(alarms)
        .where(and(lt(alarms.lastSeenAt, time), inArray(alarms.kind, [...kinds])))),
  };
}
