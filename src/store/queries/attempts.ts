import { and, asc, eq, inArray, lt, notExists, sql } from 'drizzle-orm';
import type { AttemptReader, AttemptWriter } from '../../orchestrator/model/attempt.ts';
import type { Connection } from './connection.ts';
import { prepared } from './prepared.ts';
import { firstOf, upsert } from './rows.ts';

const attemptsOf = prepared(({ db, attempts }: Connection, { resourceId }: { resourceId: string }) =>
  db
    .select()
    .from(attempts)
    .where(eq(attempts.resourceId, resourceId))
    .orderBy(asc(attempts.openedAt), asc(attempts.ref)),
);

const pruneClosed = prepared(
  (
    { db, attempts, instances, volumes }: Connection,
    { platform, endedBefore, limit }: { platform: string; endedBefore: number; limit: number },
  ) => {
    const one = sql`1`;
    const isOver = and(
      eq(attempts.platform, platform),
      lt(attempts.closedAt, endedBefore),
      notExists(db.select({ one }).from(instances).where(eq(instances.id, attempts.resourceId))),
      notExists(db.select({ one }).from(volumes).where(eq(volumes.id, attempts.resourceId))),
    );
    const found = db.select({ ref: attempts.ref }).from(attempts).where(isOver).limit(limit);
    return db.delete(attempts).where(inArray(attempts.ref, found));
  },
);

export function attemptReader(connection: Connection): AttemptReader {
  const { db, attempts, locking } = connection;
  return {
    byRef: (ref) => firstOf(locking.rows(db.select().from(attempts).where(eq(attempts.ref, ref)))),
    of: (resourceId) => attemptsOf(connection, { resourceId }),
  };
}

export function attemptWriter(connection: Connection): AttemptWriter {
  const { db, attempts } = connection;
  return {
    ...attemptReader(connection),
    put: (attempt) => upsert(connection, attempts, ['ref'], attempt),
    remove: async (ref) => void (await db.delete(attempts).where(eq(attempts.ref, ref))),
    prune: async ({ platform, endedBefore, limit }) =>
      void (await pruneClosed(connection, { platform, endedBefore, limit })),
  };
}
