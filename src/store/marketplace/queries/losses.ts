import { and, asc, count, eq, gte, isNotNull, sql } from 'drizzle-orm';
import type { LossReader, LossWriter } from '../../../marketplace/model/ledger-store.ts';
import { firstOf, upsert } from '../../queries/rows.ts';
import type { Connection } from './connection.ts';
import { isLive } from './volumes.ts';

export function lossReader({ db, losses, deployments, volumes }: Connection): LossReader {
  // The same text as the partial index's condition, so that the index is used.
  const isHeld = sql`${losses.isHeld}`;
  return {
    bySubject: (subjectId) => firstOf(db.select().from(losses).where(eq(losses.subjectId, subjectId))),
    countSince: async (providerId, time) => {
      const isCounted = and(
        eq(losses.providerId, providerId),
        eq(losses.isHeld, false),
        gte(losses.at, time),
      );
      return (await db.select({ count: count() }).from(losses).where(isCounted))[0]?.count ?? 0;
    },
    held: async (providerId) =>
      db
        .select()
        .from(losses)
        .where(and(eq(losses.providerId, providerId), isHeld))
        .orderBy(asc(losses.at), asc(losses.subjectId)),
    countHeld: async () =>
      db
        .select({ providerId: losses.providerId, count: count() })
        .from(losses)
        .where(isHeld)
        .groupBy(losses.providerId)
        .orderBy(asc(losses.providerId)),
    countLive: async (providerId) => {
      const [active] = await db
        .select({ count: count() })
        .from(deployments)
        .where(
          and(
            eq(deployments.providerId, providerId),
            sql`${deployments.status} IN ('deploying', 'running', 'stopped')`,
            isNotNull(deployments.providerInstanceId),
          ),
        );
      const [stored] = await db
        .select({ count: count() })
        .from(volumes)
        .where(and(eq(volumes.providerId, providerId), isLive(volumes)));
      return (active?.count ?? 0) + (stored?.count ?? 0);
    },
    providers: async () =>
      (
        await db
          .selectDistinct({ providerId: losses.providerId })
          .from(losses)
          .orderBy(asc(losses.providerId))
      ).map(({ providerId }) => providerId),
  };
}

export function lossWriter(connection: Connection): LossWriter {
  const { db, losses, locking } = connection;
  return {
    ...lossReader(connection),
    lock: (providerId) => locking.name(`losses ${providerId}`),
    put: (loss) => upsert(connection, losses, ['subjectId'], loss),
    release: async (subjectId) =>
      void (await db.delete(losses).where(and(eq(losses.subjectId, subjectId), eq(losses.isHeld, true)))),
  };
}
