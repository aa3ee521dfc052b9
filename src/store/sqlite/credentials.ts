import { asc, eq, lt } from 'drizzle-orm';
import type { CredentialReader, CredentialWriter } from '../../orchestrator/ports/store.ts';
import type { Db } from './db.ts';
import { accounts, apiKeys, tokens } from './schema.ts';

export function credentialReader(db: Db): CredentialReader {
  return {
    accountById: async (id) => db.select().from(accounts).where(eq(accounts.id, id)).get() ?? null,
    accountByName: async (name) => db.select().from(accounts).where(eq(accounts.name, name)).get() ?? null,
    listAccounts: async () =>
      db.select().from(accounts).orderBy(asc(accounts.createdAt), asc(accounts.id)).all(),
    keyByDigest: async (digest) => db.select().from(apiKeys).where(eq(apiKeys.digest, digest)).get() ?? null,
    listKeys: async (accountId) =>
      db
        .select()
        .from(apiKeys)
        .where(accountId === undefined ? undefined : eq(apiKeys.accountId, accountId))
        .orderBy(asc(apiKeys.createdAt), asc(apiKeys.id))
        .all(),
    tokenByDigest: async (digest) => db.select().from(tokens).where(eq(tokens.digest, digest)).get() ?? null,
  };
}

export function credentialWriter(db: Db): CredentialWriter {
  return {
    ...credentialReader(db),
    insertAccount: async (record) => void db.insert(accounts).values(record).run(),
    setPasswordHash: async (accountId, passwordHash) =>
      void db.update(accounts).set({ passwordHash }).where(eq(accounts.id, accountId)).run(),
    insertKey: async (record) => void db.insert(apiKeys).values(record).run(),
    revokeKey: async (id, revokedAt) =>
      void db.update(apiKeys).set({ revokedAt }).where(eq(apiKeys.id, id)).run(),
    recordKeyUse: async (id, lastUsedAt) =>
      void db.update(apiKeys).set({ lastUsedAt }).where(eq(apiKeys.id, id)).run(),
    insertToken: async (record) => void db.insert(tokens).values(record).run(),
    deleteTokensExpiredBefore: async (time) => void db.delete(tokens).where(lt(tokens.expiresAt, time)).run(),
  };
}
