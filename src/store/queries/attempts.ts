import { asc, eq } from 'drizzle-orm';
import type { AttemptReader, AttemptWriter } from '../../orchestrator/model/store.ts';
import type { Connection } from './connection.ts';

export function attemptReader({ db, tables: { attempts }, locking }: Connection): AttemptReader {
  return {
    byRef: async (ref) =>
      (await locking.rows(db.select().from(attempts).where(eq(attempts.ref, ref))))[0] ?? null,
    of: async (resourceId) =>
      db
        .select()
        .from(attempts)
        .where(eq(attempts.resourceId, resourceId))
        .orderBy(asc(attempts.openedAt), asc(attempts.ref)),
  };
}

export function attemptWriter(connection: Connection): AttemptWriter {
  const {
    db,
    tables: { attempts },
  } = connection;
  return {
    ...attemptReader(connection),
    put: async ({ ref, ...rest }) =>
      void (await db
        .insert(attempts)
        .values({ ref, ...rest })
        .onConflictDoUpdate({ target: attempts.ref, set: rest })),
  };
}
