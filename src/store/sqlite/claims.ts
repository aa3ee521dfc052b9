import { and, count, eq } from 'drizzle-orm';
import type { ClaimReader, ClaimWriter } from '../../orchestrator/ports/store.ts';
import type { Db } from './db.ts';
import { claims } from './schema.ts';

export function claimReader(db: Db): ClaimReader {
  return {
    use: async () =>
      db
        .select({ offerId: claims.offerId, region: claims.region, claimed: count() })
        .from(claims)
        .groupBy(claims.offerId, claims.region)
        .all(),
    isHeldBy: async (instanceId) => holds(db, instanceId),
  };
}

/** What is free is counted from the claims, never kept beside them: it cannot drift. */
export function claimWriter(db: Db): ClaimWriter {
  return {
    ...claimReader(db),
    take: async ({ instanceId, offerId, region, capacity }) => {
      if (holds(db, instanceId)) return true;
      const placement = and(eq(claims.offerId, offerId), eq(claims.region, region));
      const claimed = db.select({ claimed: count() }).from(claims).where(placement).get()?.claimed ?? 0;
      if (claimed >= capacity) return false;
      db.insert(claims).values({ instanceId, offerId, region }).run();
      return true;
    },
    release: async (instanceId) =>
      db.delete(claims).where(eq(claims.instanceId, instanceId)).run().changes === 1,
  };
}

function holds(db: Db, instanceId: string): boolean {
  return db.select().from(claims).where(eq(claims.instanceId, instanceId)).get() !== undefined;
}
