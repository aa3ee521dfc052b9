import { and, eq, gt, lte, or, sql } from 'drizzle-orm';
import type { LeaseWriter } from '../../../marketplace/ports/store.ts';
import type { Connection } from './connection.ts';

/**
 * No lease is this long, in milliseconds. One that ends further away was taken while a clock was wrong and counts as
 * run out, so that nothing waits for ever.
 */
const FARTHEST_MS = 2 * 60 * 60 * 1000;

export function leaseWriter({ db, tables: { leases } }: Connection): LeaseWriter {
  return {
    claim: async (name, holder, now, ttlMs) => {
      const isFree = or(lte(leases.until, now), gt(leases.until, now + FARTHEST_MS));
      const [lease] = await db
        .insert(leases)
        .values({ name, token: 1, holder, until: now + ttlMs })
        .onConflictDoUpdate({
          target: leases.name,
          set: {
            token: sql`CASE WHEN ${leases.holder} = ${holder} THEN ${leases.token} ELSE ${leases.token} + 1 END`,
            holder,
            until: now + ttlMs,
          },
          setWhere: or(eq(leases.holder, holder), isFree) ?? sql`false`,
        })
        .returning();
      return lease ?? null;
    },
    // The row stays: who comes next has a greater token.
    release: async (name, holder) =>
      void (await db
        .update(leases)
        .set({ holder: '', until: 0 })
        .where(and(eq(leases.name, name), eq(leases.holder, holder)))),
    releaseAll: async () => void (await db.update(leases).set({ holder: '', until: 0 })),
  };
}
