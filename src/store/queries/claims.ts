import { and, count, eq } from 'drizzle-orm';
import type { ClaimReader, ClaimWriter } from '../../orchestrator/model/store.ts';
import type { Connection } from './connection.ts';
import { often } from './often.ts';

export function claimReader(connection: Connection): ClaimReader {
  const {
    db,
    tables: { claims },
  } = connection;
  return {
    use: async () =>
      db
        .select({ offerId: claims.offerId, region: claims.region, claimed: count() })
        .from(claims)
        .groupBy(claims.offerId, claims.region),
    isHeldBy: async (instanceId) => {
      const held = await often(connection, 'claims of instance', { instanceId }, (values) =>
        db.select().from(claims).where(eq(claims.instanceId, values.instanceId)),
      );
      return held.length > 0;
    },
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
      const [found] = await often(connection, 'claims of placement', { offerId, region }, (values) =>
        db
          .select({ claimed: count() })
          .from(claims)
          .where(and(eq(claims.offerId, values.offerId), eq(claims.region, values.region))),
      );
      if ((found?.claimed ?? 0) >= capacity) return false;
      await db.insert(claims).values({ instanceId, offerId, region });
      return true;
    },
    release: async (instanceId) =>
      (await db.delete(claims).where(eq(claims.instanceId, instanceId)).returning()).length === 1,
  };
}
