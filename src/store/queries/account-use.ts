import { and, count, eq, gt, isNull, ne, sum } from 'drizzle-orm';
import type { AccountUse } from '../../orchestrator/model/store.ts';
import type { Connection } from './connection.ts';
import { toGb } from './storage-claims.ts';

export function accountUse({
  db,
  tables: { instances, storageClaims, tokens, volumes },
  locking,
}: Connection): AccountUse {
  return {
    lock: (accountId) => locking.name(`use of ${accountId}`),
    instances: async (accountId) => {
      const [found] = await db
        .select({ count: count() })
        .from(instances)
        .where(and(eq(instances.accountId, accountId), ne(instances.status, 'DESTROYED')));
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
