import { and, count, eq } from 'drizzle-orm';
import type { ClaimReader, ClaimWriter } from '../../orchestrator/ports/store.ts';
import type { Connection } from './connection.ts';

export function claimReader({ db, tables: { claims } }: Connection): ClaimReader {
  return {
    use: async () =>
      db
        .select({ offerId: claims.offerId, region: claims.region, claimed: count() })
        .from(claims)
        .groupBy(claims.offerId, claims.region),
    isHeldBy: async (instanceId) =>
      (await db.select().from(claims).where(eq(claims.instanceId, instanceId))).length > 0,
  };
}

/** What is free is counted from the claims, never kept beside them: it cannot drift. */
export function claimWriter(connection: Connection): ClaimWriter {
  const {
    db,
    tables: { claims },
    locking,
  } = connection;
  const reader = claimReader(connection);
  return {
    ...reader,
    take: async ({ instanceId, offerId, region, capacity }) => {
      // Two that count at once would both find the last unit free; of one placement, one counts at a time.
      await locking.name(`placement ${JSON.stringify([offerId, region])}`);
      if (await reader.isHeldBy(instanceId)) return true;
      const placement = and(eq(claims.offerId, offerId), eq(claims.region, region));
      const [found] = await db.select({ claimed: count() }).from(claims).where(placement);
      if ((found?.claimed ?? 0) >= capacity) return false;
      await db.insert(claims).values({ instanceId, offerId, region });
      return true;
    },
    release: async (instanceId) =>
      (await db.delete(claims).where(eq(claims.instanceId, instanceId)).returning()).length === 1,
  };
}
