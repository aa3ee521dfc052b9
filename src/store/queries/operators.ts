import { and, asc, desc, eq, gte, inArray, lt, lte, notInArray, or } from 'drizzle-orm';
import type {
  AuditReader,
  AuditWriter,
  OperatorKeyReader,
  OperatorKeyWriter,
  OperatorSessionReader,
  OperatorSessionWriter,
} from '../../operator-kit/model.ts';
import type { operatorTables } from '../schema/operators.ts';
import type { Connection as AnyConnection } from './connection.ts';
import { prepared } from './prepared.ts';
import { firstOf } from './rows.ts';

/** A connection to the database of either product. */
type Connection = AnyConnection<ReturnType<typeof operatorTables>>;

const keyById = prepared(({ db, operatorKeys }: Connection, { id }: { id: string }) =>
  db.select().from(operatorKeys).where(eq(operatorKeys.id, id)),
);

export function operatorKeyReader(connection: Connection): OperatorKeyReader {
  const { db, operatorKeys } = connection;
  return {
    byDigest: (digest) => firstOf(db.select().from(operatorKeys).where(eq(operatorKeys.digest, digest))),
    byId: (id) => firstOf(keyById(connection, { id })),
    list: async () =>
      db.select().from(operatorKeys).orderBy(asc(operatorKeys.createdAt), asc(operatorKeys.id)),
  };
}

export function operatorKeyWriter(connection: Connection): OperatorKeyWriter {
  const { db, operatorKeys } = connection;
  return {
    ...operatorKeyReader(connection),
    insert: async (record) => void (await db.insert(operatorKeys).values(record)),
    revoke: async (id, revokedAt) =>
      void (await db.update(operatorKeys).set({ revokedAt }).where(eq(operatorKeys.id, id))),
    recordUse: async (id, lastUsedAt) =>
      void (await db.update(operatorKeys).set({ lastUsedAt }).where(eq(operatorKeys.id, id))),
  };
}

const sessionByDigest = prepared(({ db, operatorSessions }: Connection, { digest }: { digest: Buffer }) =>
  db.select().from(operatorSessions).where(eq(operatorSessions.digest, digest)),
);

export function operatorSessionReader(connection: Connection): OperatorSessionReader {
  return { byDigest: (digest) => firstOf(sessionByDigest(connection, { digest })) };
}

export function operatorSessionWriter(connection: Connection): OperatorSessionWriter {
  const { db, operatorSessions: sessions } = connection;
  return {
    ...operatorSessionReader(connection),
    insert: async (record, { now, most }) => {
      const isOfKey = eq(sessions.keyId, record.keyId);
      const kept = db
        .select({ digest: sessions.digest })
        .from(sessions)
        .where(isOfKey)
        .orderBy(desc(sessions.endsAt))
        .limit(most - 1);
      await db
        .delete(sessions)
        .where(or(lte(sessions.endsAt, now), and(isOfKey, notInArray(sessions.digest, kept))));
      await db.insert(sessions).values(record);
    },
    remove: async (digest) => void (await db.delete(sessions).where(eq(sessions.digest, digest))),
  };
}

export function auditReader({ db, audit }: Connection): AuditReader {
  return {
    page: async ({ before, limit, actor, action, subject }) =>
      db
        .select()
        .from(audit)
        .where(
          and(
            before === undefined ? undefined : lt(audit.id, before),
            actor === undefined ? undefined : eq(audit.actor, actor),
            action === undefined ? undefined : eq(audit.action, action),
            subject === undefined ? undefined : eq(audit.subject, subject),
          ),
        )
        .orderBy(desc(audit.id))
        .limit(limit),
    between: async ({ from, to, limit }) =>
      db
        .select()
        .from(audit)
        .where(and(gte(audit.at, from), lte(audit.at, to)))
        .orderBy(desc(audit.at), desc(audit.id))
        .limit(limit),
  };
}

const pruneOldest = prepared(
  ({ db, audit }: Connection, { before, limit }: { before: number; limit: number }) => {
    const oldest = db.select({ id: audit.id }).from(audit).orderBy(asc(audit.id)).limit(limit);
    return db
      .delete(audit)
      .where(and(inArray(audit.id, oldest), lt(audit.at, before)))
      .returning({ id: audit.id });
  },
);

export function auditWriter(connection: Connection): AuditWriter {
  const { db, audit } = connection;
  return {
    ...auditReader(connection),
    add: async (entry) => void (await db.insert(audit).values(entry)),
    pruneOldest: async (before, limit) => (await pruneOldest(connection, { before, limit })).length,
  };
}
