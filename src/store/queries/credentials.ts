import { and, asc, eq, lt } from 'drizzle-orm';
import type { CredentialReader, CredentialWriter } from '../../orchestrator/model/store.ts';
import type { Connection } from './connection.ts';
import { often } from './often.ts';

export function credentialReader(connection: Connection): CredentialReader {
  const { db, tables } = connection;
  const { accounts, apiKeys, tokens } = tables;
  return {
    accountById: async (id) => (await db.select().from(accounts).where(eq(accounts.id, id)))[0] ?? null,
    accountByName: async (name) =>
      (await db.select().from(accounts).where(eq(accounts.name, name)))[0] ?? null,
    listAccounts: async () => db.select().from(accounts).orderBy(asc(accounts.createdAt), asc(accounts.id)),
    keyByDigest: async (digest) => {
      const [record] = await often(connection, 'key', { digest }, (values) =>
        db.select().from(apiKeys).where(eq(apiKeys.digest, values.digest)),
      );
      return record ?? null;
    },
    listKeys: async (accountId) =>
      db
        .select()
        .from(apiKeys)
        .where(accountId === undefined ? undefined : eq(apiKeys.accountId, accountId))
        .orderBy(asc(apiKeys.createdAt), asc(apiKeys.id)),
    tokenByDigest: async (digest) =>
      (await db.select().from(tokens).where(eq(tokens.digest, digest)))[0] ?? null,
  };
}

export function credentialWriter(connection: Connection): CredentialWriter {
  const { db, tables } = connection;
  const { accounts, apiKeys, tokens } = tables;
  return {
    ...credentialReader(connection),
    insertAccount: async (record) => void (await db.insert(accounts).values(record)),
    setPasswordHash: async (accountId, passwordHash) =>
      void (await db.update(accounts).set({ passwordHash }).where(eq(accounts.id, accountId))),
    insertKey: async (record) => void (await db.insert(apiKeys).values(record)),
    revokeKey: async (id, revokedAt) =>
      void (await db.update(apiKeys).set({ revokedAt }).where(eq(apiKeys.id, id))),
    recordKeyUse: async (id, lastUsedAt) =>
      void (await db.update(apiKeys).set({ lastUsedAt }).where(eq(apiKeys.id, id))),
    insertToken: async (record) => void (await db.insert(tokens).values(record)),
    deleteTokensBoughtWith: async (accountId, parentDigest) =>
      void (await db
        .delete(tokens)
        .where(and(eq(tokens.accountId, accountId), eq(tokens.parentDigest, parentDigest)))),
    deleteTokensExpiredBefore: async (time) =>
      void (await db.delete(tokens).where(lt(tokens.expiresAt, time))),
  };
}
