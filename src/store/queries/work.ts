import { randomUUID } from 'node:crypto';
import {
  and,
  asc,
  type Column,
  count,
  eq,
  gt,
  inArray,
  isNotNull,
  lte,
  or,
  type SQL,
  sql,
} from 'drizzle-orm';
import type { Store, WorkReader, WorkWriter } from '../../orchestrator/model/store.ts';
import type { InstanceWorkKind, Lease } from '../../orchestrator/model/work.ts';
import type { Connection } from './connection.ts';
import { often } from './often.ts';

/**
 * No pause and no lease is this long, in milliseconds. A moment that is further away was written while a clock was
 * wrong and counts as come, so that nothing waits for ever. A holder that is robbed so writes nothing: its token is
 * no longer the row's.
 */
const FARTHEST_MS = 2 * 60 * 60 * 1000;

export function workReader(connection: Connection): WorkReader {
  const {
    db,
    tables: { work },
    locking,
  } = connection;
  return {
    of: async (resourceId) => {
      const [row] = await often(connection, 'work', { resourceId }, (values) =>
        locking.rows(db.select().from(work).where(eq(work.resourceId, values.resourceId))),
      );
      return row ?? null;
    },
    backlog: async () => {
      const [found] = await db.select({ count: count(), oldestDueAt: least(dueSince(work)) }).from(work);
      return found ?? { count: 0, oldestDueAt: null };
    },
    countInstancesByStep: async () => {
      const rows = await db
        .select({ step: work.kind, count: count() })
        .from(work)
        .where(eq(work.resourceKind, 'instance'))
        .groupBy(work.kind);
      return rows.map((row) => ({ ...row, step: row.step as InstanceWorkKind }));
    },
  };
}

const noLease = { leaseToken: null, leaseOwner: null, leaseUntil: 0 };

export function workWriter(connection: Connection, onWrite: () => void): WorkWriter {
  const {
    db,
    tables: { work },
    locking,
  } = connection;
  const heldBy = ({ resourceId, token }: Pick<Lease, 'resourceId' | 'token'>) =>
    and(eq(work.resourceId, resourceId), eq(work.leaseToken, token));
  return {
    ...workReader(connection),
    put: async ({ resourceId, resourceKind, kind, notBefore, deadlineAt, cookie = null }) => {
      const step = {
        kind,
        notBefore,
        deadlineAt,
        cookie,
        attempt: 0,
        lastError: null,
        waitsSince: notBefore,
      };
      await db
        .insert(work)
        .values({ resourceId, resourceKind, ...step, ...noLease })
        .onConflictDoUpdate({ target: work.resourceId, set: step });
      onWrite();
    },
    hasten: async (resourceId, now) => {
      await db
        .update(work)
        .set({ notBefore: now, waitsSince: earlier(dueSince(work), now) })
        .where(eq(work.resourceId, resourceId));
      onWrite();
    },
    check: async (lease) => {
      const { resourceId, token } = lease;
      const [row] = await often(connection, 'lease', { resourceId, token }, (values) =>
        locking.rows(db.select().from(work).where(heldBy(values))),
      );
      if (row === undefined) return 'lost';
      if (row.kind !== lease.kind || row.attempt !== lease.attempt) return 'superseded';
      lease.deadlineAt = row.deadlineAt;
      return 'held';
    },
    release: async (lease, later) => {
      const { resourceId, token } = lease;
      const values = { ...noLease, ...later, resourceId, token };
      await often(
        connection,
        `release ${Object.keys(values)}`,
        values,
        ({ resourceId: id, token: held, ...set }) =>
          db
            .update(work)
            .set(set)
            .where(heldBy({ resourceId: id, token: held })),
      );
      onWrite();
    },
    extendDeadlines: async (byMs) =>
      void (await db
        .update(work)
        .set({ deadlineAt: sql`${work.deadlineAt} + ${byMs}` })
        .where(isNotNull(work.deadlineAt))),
    finish: async (lease) => void (await db.delete(work).where(heldBy(lease))),
  };
}

type Claim = Parameters<Store['claimWork']>[0] & { token: string; farthest: number };

export async function claimWork(
  connection: Connection,
  claim: Parameters<Store['claimWork']>[0],
): Promise<Lease[]> {
  const values = { ...claim, token: randomUUID(), farthest: claim.now + FARTHEST_MS };
  const rows = await often(connection, 'claim', values, (claimed) => claimQuery(connection, claimed));
  return rows.map(({ leaseToken, leaseOwner: _, leaseUntil: until, waitsSince: __, ...step }) => ({
    ...step,
    token: leaseToken ?? '',
    until,
  }));
}

function claimQuery(
  { db, tables: { work }, locking }: Connection,
  { owner, now, farthest, leaseUntil, limit, resourceKind, token }: Claim,
) {
  const hasCome = (moment: Column): SQL | undefined => or(lte(moment, now), gt(moment, farthest));
  // A query of its own ahead of the update is run once; as a condition it may be run for each row.
  const due = db.$with('due').as(
    locking.freeRows(
      db
        .select({ resourceId: work.resourceId })
        .from(work)
        .where(and(eq(work.resourceKind, resourceKind), hasCome(work.notBefore), hasCome(work.leaseUntil)))
        .orderBy(asc(work.notBefore))
        .limit(limit),
    ),
  );
  return db
    .with(due)
    .update(work)
    .set({
      leaseToken: token,
      leaseOwner: owner,
      leaseUntil,
      attempt: sql`${work.attempt} + 1`,
    })
    .where(inArray(work.resourceId, db.select({ resourceId: due.resourceId }).from(due)))
    .returning();
}

export async function nextWorkAt(connection: Connection): Promise<number | null> {
  const {
    db,
    tables: { work },
  } = connection;
  const { notBefore, leaseUntil } = work;
  const freeAt = sql`CASE WHEN ${notBefore} > ${leaseUntil} THEN ${notBefore} ELSE ${leaseUntil} END`;
  const [found] = await often(connection, 'next', {}, () => db.select({ at: least(freeAt) }).from(work));
  return found?.at ?? null;
}

export async function endAbandonedLeases({ db, tables: { work } }: Connection): Promise<void> {
  await db.update(work).set(noLease);
}

function dueSince({ waitsSince, notBefore }: Connection['tables']['work']): SQL<number> {
  return sql<number>`coalesce(${waitsSince}, ${notBefore})`;
}

function earlier(moment: SQL, other: number): SQL<number> {
  return sql<number>`CASE WHEN ${moment} < ${other} THEN ${moment} ELSE ${other} END`;
}

/** PostgreSQL's driver gives the least of 64-bit numbers as text. */
function least(value: Column | SQL): SQL<number | null> {
  return sql<number | null>`min(${value})`.mapWith(Number);
}
