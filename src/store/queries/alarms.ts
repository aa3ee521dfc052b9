import { and, asc, eq, lt } from 'drizzle-orm';
import type { AlarmReader, AlarmWriter } from '../../orchestrator/model/alarm.ts';
import type { Connection } from './connection.ts';

export function alarmReader({ db, tables: { alarms } }: Connection): AlarmReader {
  return {
    list: async () =>
      db.select().from(alarms).orderBy(asc(alarms.since), asc(alarms.kind), asc(alarms.subject)),
  };
}

export function alarmWriter(connection: Connection): AlarmWriter {
  const {
    db,
    tables: { alarms },
  } = connection;
  return {
    ...alarmReader(connection),
    put: async (alarm) => {
      const { text, lastSeenAt } = alarm;
      await db
        .insert(alarms)
        .values(alarm)
        .onConflictDoUpdate({ target: [alarms.kind, alarms.subject], set: { text, lastSeenAt } });
    },
    remove: async ({ kind, subject }) =>
      void (await db.delete(alarms).where(and(eq(alarms.kind, kind), eq(alarms.subject, subject)))),
    acknowledge: async ({ kind, subject }, acknowledgedBy) =>
      db
        .update(alarms)
        .set({ acknowledgedBy })
        .where(and(eq(alarms.kind, kind), subject === undefined ? undefined : eq(alarms.subject, subject)))
        .returning(),
    removeSeenBefore: async (time) => void (await db.delete(alarms).where(lt(alarms.lastSeenAt, time))),
  };
}
