import { and, asc, count, eq, getTableColumns, gt, isNotNull, isNull, lt, sql, sum } from 'drizzle-orm';
import type { AccountUse } from '../../orchestrator/model/claims.ts';
import type { CredentialReader, CredentialWriter } from '../../orchestrator/model/credentials.ts';
import type { Transaction } from '../../orchestrator/model/store.ts';
import { toGb } from './claims.ts';
import type { Connection } from './connection.ts';
import { prepared, preparedWrite } from './prepared.ts';
import { firstOf } from './rows.ts';

const keyByDigest = prepared(({ db, accounts, apiKeys }: Connection, { digest }: { digest: Buffer }) =>
  db
    .select({ ...getTableColumns(apiKeys), closedAt: accounts.closedAt })
    .from(apiKeys)
    .innerJoin(accounts, eq(accounts.id, apiKeys.accountId))
    .where(eq(apiKeys.digest, digest)),
);

export function credentialReader(connection: Connection): CredentialReader {
  const { db, accounts, apiKeys, tokens } = connection;
  return {
    accountById: (id) => firstOf(db.select().from(accounts).where(eq(accounts.id, id))),
    accountByName: (name) => firstOf(db.select().from(accounts).where(eq(accounts.name, name))),
    listAccounts: async () => db.select().from(accounts).orderBy(asc(accounts.createdAt), asc(accounts.id)),
    keyByDigest: async (digest) => {
      const [found] = await keyByDigest(connection, { digest });
      if (found === undefined) return null;
      const { closedAt, ...key } = found;
      return { ...key, revokedAt: key.revokedAt ?? closedAt };
    },
    listKeys: async (accountId) =>
      db
        .select()
        .from(apiKeys)
        .where(accountId === undefined ? undefined : eq(apiKeys.accountId, accountId))
        .orderBy(asc(apiKeys.createdAt), asc(apiKeys.id)),
    tokenByDigest: (digest) => firstOf(db.select().from(tokens).where(eq(tokens.digest, digest))),
  };
}

const closedAccounts = prepared(({ db, accounts }: Connection, _values: object) =>
  db.select({ id: accounts.id }).from(accounts).where(isNotNull(accounts.closedAt)),
);

const deleteExpiredTokens = preparedWrite(({ db, tokens }: Connection, { time }: { time: number }) =>
  db.delete(tokens).where(lt(tokens.expiresAt, time)),
);

const deleteOldIdempotency = preparedWrite(({ db, idempotency }: Connection, { time }: { time: number }) =>
  db.delete(idempotency).where(lt(idempotency.createdAt, time)),
);

/** `ended` is called when a write may end a credential. */
export function credentialWriter(connection: Connection, ended: () => void): CredentialWriter {
  const { db, accounts, apiKeys, idempotency, instances, tokens, volumes } = connection;
  const deleteAccount = async (accountId: string): Promise<boolean> => {
    ended();
    for (const resources of [instances, volumes]) {
      const ofAccount = db.select({ id: resources.id }).from(resources);
      if ((await ofAccount.where(eq(resources.accountId, accountId)).limit(1)).length > 0) return false;
    }
    for (const owned of [tokens, idempotency, apiKeys])
      await db.delete(owned).where(eq(owned.accountId, accountId));
    await db.delete(accounts).where(eq(accounts.id, accountId));
    return true;
  };
  return {
    ...credentialReader(connection),
    insertAccount: async (record) => void (await db.insert(accounts).values(record)),
    setPasswordHash: async (accountId, passwordHash) => {
      ended();
      await db.update(accounts).set({ passwordHash }).where(eq(accounts.id, accountId));
    },
    insertKey: async (record) => void (await db.insert(apiKeys).values(record)),
    revokeKey: async (id, revokedAt) => {
      ended();
      await db.update(apiKeys).set({ revokedAt }).where(eq(apiKeys.id, id));
    },
    recordKeyUse: async (id, lastUsedAt) =>
      void (await db.update(apiKeys).set({ lastUsedAt }).where(eq(apiKeys.id, id))),
    endAccess: async (accountId, revokedAt) => {
      ended();
      const isValid = and(eq(apiKeys.accountId, accountId), isNull(apiKeys.revokedAt));
      await db.update(apiKeys).set({ revokedAt }).where(isValid);
      await db.update(accounts).set({ passwordHash: null }).where(eq(accounts.id, accountId));
      await db.delete(tokens).where(eq(tokens.accountId, accountId));
    },
    closeAccount: async (accountId, closedAt) => {
      ended();
      const isOpen = and(eq(accounts.id, accountId), isNull(accounts.closedAt));
      await db.update(accounts).set({ closedAt }).where(isOpen);
    },
    deleteClosedAccounts: async () => {
      for (const { id } of await closedAccounts(connection, {})) await deleteAccount(id);
    },
    deleteAccount,
    insertToken: async (record) => void (await db.insert(tokens).values(record)),
    deleteTokensBoughtWith: async (accountId, parentDigest) =>
      void (await db
        .delete(tokens)
        .where(and(eq(tokens.accountId, accountId), eq(tokens.parentDigest, parentDigest)))),
    deleteTokensExpiredBefore: (time) => deleteExpiredTokens(connection, { time }),
  };
}

/** The usage of an account that its quotas limit. */
export function accountUse({
  db,
  instances,
  storageClaims,
  tokens,
  volumes,
  locking,
}: Connection): AccountUse {
  return {
    lock: (accountId) => locking.name(`use of ${accountId}`),
    keepOpen: (accountId) => locking.sharedName(`access of ${accountId}`),
    lockToClose: (accountId) => locking.name(`access of ${accountId}`),
    instances: async (accountId) => {
      const [found] = await db
        .select({ count: count() })
        .from(instances)
        .where(and(eq(instances.accountId, accountId), sql`${instances.status} <> 'DESTROYED'`));
      return found?.count ?? 0;
    },
    volumes: async (accountId) => {
      const [found] = await db
        .select({ count: count() })
        .from(volumes)
        .where(and(eq(volumes.accountId, accountId), isNull(volumes.deletedAt)));
      return found?.count ?? 0;
    },
    storageGb: async (accountId) => {
      const [found] = await db
        .select({ mb: sum(storageClaims.mb) })
        .from(storageClaims)
        .innerJoin(volumes, eq(volumes.id, storageClaims.volumeId))
        .where(and(eq(volumes.accountId, accountId), isNull(volumes.deletedAt)));
      return toGb(Number(found?.mb ?? 0));
    },
    liveTokens: async (accountId, now) => {
      const [found] = await db
        .select({ count: count() })
        .from(tokens)
        .where(and(eq(tokens.accountId, accountId), gt(tokens.expiresAt, now)));
      return found?.count ?? 0;
    },
  };
}

export function idempotencyWriter(connection: Connection): Transaction['idempotency'] {
  const { db, idempotency, locking } = connection;
  return {
    find: async (accountId, key) => {
      // Of two concurrent requests with the same key, the second waits here and then finds the first one's record.
      await locking.name(`idempotency ${JSON.stringify([accountId, key])}`);
      const [found] = await db
        .select()
        .from(idempotency)
        .where(and(eq(idempotency.accountId, accountId), eq(idempotency.key, key)));
      return found ?? null;
    },
    insert: async (record) => void (await db.insert(idempotency).values(record)),
    deleteCreatedBefore: (time) => deleteOldIdempotency(connection, { time }),
  };
}
