import { and, eq, gt, lte, or, sql } from 'drizzle-orm';
import type { LeaseWriter } from '../../../marketplace/model/store.ts';
import { often } from '../../queries/often.ts';
import type { Connection } from './connection.ts';

/**
 * No lease is this long, in milliseconds. One that ends further away was taken while a clock was wrong and counts as
 * run out, so that nothing waits for ever.
 */
const FARTHEST_MS = 2 * 60 * 60 * 1000;

export function leaseWriter(connection: Connection): LeaseWriter {
  const {
    db,
    tables: { leases },
    locking,
  } = connection;
  return {
    claim: async (name, holder, now, ttlMs) => {
      const asked = { name, holder, now, until: now + ttlMs, farthest: now + FARTHEST_MS };
      const [lease] = await often(connection, 'lease', asked, (values) =>
        db
          .insert(leases)
          .values({ name: values.name, token: 1, holder: values.holder, until: values.until })
          .onConflictDoUpdate({
            target: leases.name,
            set: {
              token: sql`CASE WHEN ${leases.holder} = ${values.holder} THEN ${leases.token} ELSE ${leases.token} + 1 END`,
              holder: values.holder,
              until: values.until,
            },
            setWhere:
              or(
                eq(leases.holder, values.holder),
                lte(leases.until, values.now),
                gt(leases.until, values.farthest),
              ) ?? sql`false`,
          })
          .returning(),
      );
      return lease ?? null;
    },
    // The row stays: who comes next has a greater token.
    release: async (name, holder) =>
      void (await db
        .update(leases)
        .set({ holder: '', until: 0 })
        .where(and(eq(leases.name, name), eq(leases.holder, holder)))),
    isHeld: async ({ name, token, holder }) => {
      const [held] = await often(connection, 'lease held', { name, token, holder }, (values) =>
        locking.sharedRows(
          db
            .select({ token: leases.token })
            .from(leases)
            .where(
              and(
                eq(leases.name, values.name),
                eq(leases.token, values.token),
                eq(leases.holder, values.holder),
              ),
            ),
        ),
      );
      return held !== undefined;
    },
    releaseAll: async () => void (await db.update(leases).set({ holder: '', until: 0 })),
  };
}
