import { and, asc, desc, eq, inArray, isNotNull, type SQL } from 'drizzle-orm';
import type { SshKeyRecord } from '../../../marketplace/model/people.ts';
import {
  type KeyReader,
  type KeyWriter,
  REVOKED_KEYS,
  type SshKeyReader,
  type SshKeyWriter,
  type UserReader,
  type UserWriter,
} from '../../../marketplace/model/people-store.ts';
import { prepared } from '../../queries/prepared.ts';
import { firstOf } from '../../queries/rows.ts';
import type { Connection } from './connection.ts';

const userById = prepared(({ db, users, locking }: Connection, { id }: { id: string }) =>
  locking.rows(db.select().from(users).where(eq(users.id, id))),
);

const keyByDigest = prepared(({ db, apiKeys }: Connection, { digest }: { digest: Buffer }) =>
  db.select().from(apiKeys).where(eq(apiKeys.digest, digest)),
);

const recordKeyUse = prepared(({ db, apiKeys }: Connection, { id, at }: { id: string; at: number }) =>
  db.update(apiKeys).set({ lastUsedAt: at }).where(eq(apiKeys.id, id)),
);

export function userReader(connection: Connection): UserReader {
  const { db, users } = connection;
  return {
    byId: (id) => firstOf(userById(connection, { id })),
    byEmail: (email) => firstOf(db.select().from(users).where(eq(users.email, email))),
    list: async () => db.select().from(users).orderBy(asc(users.createdAt), asc(users.id)),
    suspended: async () => db.select().from(users).where(isNotNull(users.suspension)).orderBy(asc(users.id)),
  };
}

export function userWriter(connection: Connection): UserWriter {
  const { db, users } = connection;
  return {
    ...userReader(connection),
    insert: async (record) => void (await db.insert(users).values(record)),
    update: async (record) => void (await db.update(users).set(record).where(eq(users.id, record.id))),
  };
}

export function keyReader(connection: Connection): KeyReader {
  const { db, apiKeys, locking } = connection;
  return {
    byDigest: (digest) => firstOf(keyByDigest(connection, { digest })),
    byId: (id) => firstOf(locking.rows(db.select().from(apiKeys).where(eq(apiKeys.id, id)))),
    ofUser: async (userId) =>
      db
        .select()
        .from(apiKeys)
        .where(eq(apiKeys.userId, userId))
        .orderBy(asc(apiKeys.createdAt), asc(apiKeys.id)),
  };
}

export function keyWriter(connection: Connection, changed: (subject: string) => void): KeyWriter {
  const { db, apiKeys } = connection;
  return {
    ...keyReader(connection),
    insert: async (record) => void (await db.insert(apiKeys).values(record)),
    revoke: async (id, at) => {
      changed(REVOKED_KEYS);
      await db.update(apiKeys).set({ revokedAt: at }).where(eq(apiKeys.id, id));
    },
    recordUse: async (id, at) => void (await recordKeyUse(connection, { id, at })),
  };
}

const sshKeyById = prepared(({ db, sshKeys, locking }: Connection, { id }: { id: string }) =>
  locking.rows(db.select().from(sshKeys).where(eq(sshKeys.id, id))),
);

const insertSshKey = prepared(({ db, sshKeys }: Connection, record: SshKeyRecord) =>
  db.insert(sshKeys).values(record),
);

const removeSshKey = prepared(({ db, sshKeys }: Connection, { id }: { id: string }) =>
  db.delete(sshKeys).where(eq(sshKeys.id, id)),
);

export function sshKeyReader(connection: Connection): SshKeyReader {
  const { db, sshKeys } = connection;
  return {
    byId: (id) => firstOf(sshKeyById(connection, { id })),
    list: async ({ teamIds, userId }) => {
      const conditions: SQL[] = [inArray(sshKeys.teamId, [...teamIds]), eq(sshKeys.isTemporary, false)];
      if (userId !== undefined) conditions.push(eq(sshKeys.userId, userId));
      return db
        .select()
        .from(sshKeys)
        .where(and(...conditions))
        .orderBy(desc(sshKeys.createdAt), desc(sshKeys.id));
    },
  };
}

export function sshKeyWriter(connection: Connection): SshKeyWriter {
  return {
    ...sshKeyReader(connection),
    insert: async (record) => void (await insertSshKey(connection, record)),
    remove: async (id) => void (await removeSshKey(connection, { id })),
  };
}
