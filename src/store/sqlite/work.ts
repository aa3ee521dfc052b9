import { randomUUID } from 'node:crypto';
import { and, asc, count, eq, inArray, isNotNull, lte, sql } from 'drizzle-orm';
import type { Store, WorkReader, WorkWriter } from '../../orchestrator/ports/store.ts';
import type { Lease } from '../../orchestrator/reconcile/work.ts';
import type { Db } from './db.ts';
import { work } from './schema.ts';

export function workReader(db: Db): WorkReader {
  return {
    of: async (resourceId) => db.select().from(work).where(eq(work.resourceId, resourceId)).get() ?? null,
    backlog: async () => {
      const oldestDueAt = sql<number | null>`min(${work.notBefore})`;
      return db.select({ count: count(), oldestDueAt }).from(work).get() ?? { count: 0, oldestDueAt: null };
    },
  };
}

const noLease = { leaseToken: null, leaseOwner: null, leaseUntil: 0 };

export function workWriter(db: Db, onWrite: () => void): WorkWriter {
  const heldBy = (lease: Lease) =>
    and(eq(work.resourceId, lease.resourceId), eq(work.leaseToken, lease.token));
  return {
    ...workReader(db),
    put: async ({ resourceId, resourceKind, kind, notBefore, deadlineAt }) => {
      const step = { kind, notBefore, deadlineAt, cookie: null, attempt: 0, lastError: null };
      db.insert(work)
        .values({ resourceId, resourceKind, ...step, ...noLease })
        .onConflictDoUpdate({ target: work.resourceId, set: step })
        .run();
      onWrite();
    },
    hasten: async (resourceId, now) => {
      db.update(work).set({ notBefore: now }).where(eq(work.resourceId, resourceId)).run();
      onWrite();
    },
    check: async (lease) => {
      const row = db.select().from(work).where(heldBy(lease)).get();
      if (row === undefined) return 'lost';
      return row.kind === lease.kind && row.attempt === lease.attempt ? 'held' : 'superseded';
    },
    release: async (lease, later) => {
      db.update(work)
        .set({ ...noLease, ...later })
        .where(heldBy(lease))
        .run();
      onWrite();
    },
    closeCreate: async (lease) =>
      void db.update(work).set({ createOpenUntil: null }).where(heldBy(lease)).run(),
    extendDeadlines: async (byMs) =>
      void db
        .update(work)
        .set({ deadlineAt: sql`${work.deadlineAt} + ${byMs}` })
        .where(isNotNull(work.deadlineAt))
        .run(),
    finish: async (lease) => void db.delete(work).where(heldBy(lease)).run(),
  };
}

export function claimWork(
  db: Db,
  { owner, now, leaseUntil, limit, resourceKind }: Parameters<Store['claimWork']>[0],
): Lease[] {
  const due = db
    .select({ resourceId: work.resourceId })
    .from(work)
    .where(and(eq(work.resourceKind, resourceKind), lte(work.notBefore, now), lte(work.leaseUntil, now)))
    .orderBy(asc(work.notBefore))
    .limit(limit);
  const rows = db
    .update(work)
    .set({
      leaseToken: randomUUID(),
      leaseOwner: owner,
      leaseUntil,
      attempt: sql`${work.attempt} + 1`,
      createOpenUntil: sql`CASE WHEN ${work.kind} = 'create' THEN ${leaseUntil} ELSE ${work.createOpenUntil} END`,
    })
    .where(inArray(work.resourceId, due))
    .returning()
    .all();
  return rows.map(({ leaseToken, leaseOwner: _, leaseUntil: until, ...step }) => ({
    ...step,
    token: leaseToken ?? '',
    until,
  }));
}

export function nextWorkAt(db: Db): number | null {
  const at = sql<number | null>`min(max(${work.notBefore}, ${work.leaseUntil}))`;
  return db.select({ at }).from(work).get()?.at ?? null;
}

export function endAbandonedLeases(db: Db): void {
  db.update(work).set(noLease).run();
}
