import { and, asc, desc, eq, isNull, lte, min } from 'drizzle-orm';
import type { MailReader, MailWriter } from '../../../marketplace/model/store.ts';
import { often } from '../../queries/often.ts';
import type { Connection } from './connection.ts';

export function mailReader(connection: Connection): MailReader {
  const {
    db,
    tables: { mails },
  } = connection;
  const isOpen = and(isNull(mails.sentAt), isNull(mails.failedAt));
  return {
    due: (at, most) =>
      often(connection, 'mails that are due', { at, most }, (values) =>
        db
          .select()
          .from(mails)
          .where(and(isOpen, lte(mails.dueAt, values.at)))
          .orderBy(asc(mails.dueAt), asc(mails.id))
          .limit(values.most),
      ),
    nextDueAt: async () => {
      const [found] = await db
        .select({ at: min(mails.dueAt) })
        .from(mails)
        .where(isOpen);
      return found?.at ?? null;
    },
    list: async ({ to, limit }) =>
      db
        .select()
        .from(mails)
        .where(to === undefined ? undefined : eq(mails.to, to))
        .orderBy(desc(mails.createdAt), desc(mails.id))
        .limit(limit),
  };
}

export function mailWriter(connection: Connection): MailWriter {
  const {
    db,
    tables: { mails },
    locking,
  } = connection;
  return {
    ...mailReader(connection),
    byId: async (id) => (await locking.rows(db.select().from(mails).where(eq(mails.id, id))))[0] ?? null,
    insert: async (record) =>
      void (await db.insert(mails).values(record).onConflictDoNothing({ target: mails.dedupeKey })),
    update: async (record) => void (await db.update(mails).set(record).where(eq(mails.id, record.id))),
  };
}
