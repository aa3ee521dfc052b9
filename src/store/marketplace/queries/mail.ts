import {
  and,
  asc,
  count,
  desc,
  eq,
  gte,
  inArray,
  isNotNull,
  isNull,
  lt,
  lte,
  min,
  or,
  type SQL,
} from 'drizzle-orm';
import type { MailReader, MailState, MailWriter } from '../../../marketplace/model/ledger-store.ts';
import type { StockAlertReader, StockAlertWriter } from '../../../marketplace/model/people-store.ts';
import { prepared } from '../../queries/prepared.ts';
import { firstOf } from '../../queries/rows.ts';
import type { Connection } from './connection.ts';
import { isAfter } from './pages.ts';

function isOpen({ mails }: Connection): SQL | undefined {
  return and(isNull(mails.sentAt), isNull(mails.failedAt));
}

function isIn(connection: Connection, state: MailState): SQL | undefined {
  const { mails } = connection;
  if (state === 'waiting') return isOpen(connection);
  return state === 'sent' ? isNotNull(mails.sentAt) : isNotNull(mails.failedAt);
}

const dueMails = prepared((connection: Connection, { at, most }: { at: number; most: number }) => {
  const { mails } = connection;
  return connection.db
    .select()
    .from(mails)
    .where(and(isOpen(connection), lte(mails.dueAt, at)))
    .orderBy(asc(mails.dueAt), asc(mails.id))
    .limit(most);
});

export function mailReader(connection: Connection): MailReader {
  const { db, mails } = connection;
  return {
    due: (at, most) => dueMails(connection, { at, most }),
    list: async ({ to, state, after, limit }) =>
      db
        .select()
        .from(mails)
        .where(
          and(
            isAfter(mails.createdAt, mails.id, after),
            to === undefined ? undefined : eq(mails.to, to),
            state === undefined ? undefined : isIn(connection, state),
          ),
        )
        .orderBy(desc(mails.createdAt), desc(mails.id))
        .limit(limit),
    waiting: async () => {
      const [found] = await db
        .select({ count: count(), oldestCreatedAt: min(mails.createdAt), nextDueAt: min(mails.dueAt) })
        .from(mails)
        .where(isOpen(connection));
      return found ?? { count: 0, oldestCreatedAt: null, nextDueAt: null };
    },
    countGivenUpSince: async (time) => {
      const [found] = await db.select({ count: count() }).from(mails).where(gte(mails.failedAt, time));
      return found?.count ?? 0;
    },
  };
}

export function mailWriter(connection: Connection): MailWriter {
  const { db, mails, locking } = connection;
  return {
    ...mailReader(connection),
    byId: (id) => firstOf(locking.rows(db.select().from(mails).where(eq(mails.id, id)))),
    insert: async (record) =>
      void (await db.insert(mails).values(record).onConflictDoNothing({ target: mails.dedupeKey })),
    update: async (record) => void (await db.update(mails).set(record).where(eq(mails.id, record.id))),
    deleteEnded: async (before, limit) => {
      const ended = db
        .select({ id: mails.id })
        .from(mails)
        .where(and(lt(mails.createdAt, before), or(isNotNull(mails.sentAt), isNotNull(mails.failedAt))))
        .orderBy(asc(mails.createdAt))
        .limit(limit);
      const deleted = await db.delete(mails).where(inArray(mails.id, ended)).returning({ id: mails.id });
      return deleted.length;
    },
  };
}

export function stockAlertReader({ db, stockAlerts }: Connection): StockAlertReader {
  const byAge = [asc(stockAlerts.createdAt), asc(stockAlerts.id)];
  return {
    list: async () =>
      db
        .select()
        .from(stockAlerts)
        .orderBy(...byAge),
    ofUser: async (userId) =>
      db
        .select()
        .from(stockAlerts)
        .where(eq(stockAlerts.userId, userId))
        .orderBy(...byAge),
  };
}

export function stockAlertWriter(connection: Connection): StockAlertWriter {
  const { db, stockAlerts, locking } = connection;
  return {
    ...stockAlertReader(connection),
    byId: (id) => firstOf(locking.rows(db.select().from(stockAlerts).where(eq(stockAlerts.id, id)))),
    insert: async (record) => void (await db.insert(stockAlerts).values(record)),
    update: async (record) =>
      void (await db.update(stockAlerts).set(record).where(eq(stockAlerts.id, record.id))),
    remove: async (id) => void (await db.delete(stockAlerts).where(eq(stockAlerts.id, id))),
  };
}
