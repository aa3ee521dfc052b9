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
import { DEFAULT_PLATFORM } from '../../orchestrator/model/platform-resource.ts';
import type { Store } from '../../orchestrator/model/store.ts';
import type { InstanceWorkKind, Lease, Work, WorkReader, WorkWriter } from '../../orchestrator/model/work.ts';
import { FARTHEST_MS } from '../../work/lease-time.ts';
import type { Connection } from './connection.ts';
import { asEncoded, encodeRow } from './encoded-row.ts';
import { prepared, preparedWrite } from './prepared.ts';
import { firstOf } from './rows.ts';

type WorkTable = Connection['work'];

const workOf = prepared(({ db, work, locking }: Connection, { resourceId }: { resourceId: string }) =>
  locking.rows(db.select().from(work).where(eq(work.resourceId, resourceId))),
);

const leasedWork = prepared(({ db, work, locking }: Connection, lease: Pick<Lease, 'resourceId' | 'token'>) =>
  locking.rows(db.select().from(work).where(isHeldBy(work, lease))),
);

/** The earliest row without a lease, from the index, and the earliest end among the few leased rows. */
const nextMoments = prepared(({ db, work }: Connection, { platform }: { platform: string }) => {
  const { notBefore, leaseUntil } = work;
  const isHere = eq(work.platform, platform);
  const freeAt = sql`CASE WHEN ${notBefore} > ${leaseUntil} THEN ${notBefore} ELSE ${leaseUntil} END`;
  return db
    .select({ at: least(notBefore) })
    .from(work)
    .where(and(isHere, eq(leaseUntil, 0)))
    .unionAll(
      db
        .select({ at: least(freeAt) })
        .from(work)
        .where(and(isHere, gt(leaseUntil, 0))),
    );
});

export function workReader(connection: Connection): WorkReader {
  const { db, work } = connection;
  return {
    of: (resourceId) => firstOf(workOf(connection, { resourceId })),
    backlog: async () => {
      const [found] = await db.select({ count: count(), oldestDueAt: least(work.waitsSince) }).from(work);
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
    list: async (limit) => {
      const rows = await db
        .select()
        .from(work)
        .orderBy(asc(work.waitsSince), asc(work.resourceId))
        .limit(limit);
      return rows.map(({ leaseToken: _token, leaseOwner: _owner, fence: _fence, ...row }) => row);
    },
  };
}

const noWait = { waitedAttempt: null, isHeld: false };
const newStep = { cookie: null, attempt: 0, lastError: null, progress: null, ...noWait };
const noLease = { leaseToken: null, leaseOwner: null, leaseUntil: 0 };

const releaseLease = preparedWrite(({ db, work }: Connection, lease: Pick<Lease, 'resourceId' | 'token'>) =>
  db.update(work).set(noLease).where(isHeldBy(work, lease)),
);

/** Releases the lease until the step continues. An `attempt` of null keeps the one before. */
const continueLater = preparedWrite(
  (
    { db, work }: Connection,
    {
      resourceId,
      token,
      attempt,
      progress,
      ...step
    }: Pick<Lease, 'resourceId' | 'token'> &
      Pick<Work, 'cookie' | 'notBefore' | 'lastError' | 'progress' | 'waitedAttempt' | 'isHeld'> & {
        attempt: number | null;
      },
  ) =>
    db
      .update(work)
      .set({
        ...step,
        ...asEncoded({ progress }),
        attempt: sql`coalesce(${attempt}, ${work.attempt})`,
        ...noLease,
      })
      .where(isHeldBy(work, { resourceId, token })),
);

const replaceWork = preparedWrite(
  (
    { db, work }: Connection,
    {
      resourceId,
      token,
      ...next
    }: Pick<Lease, 'resourceId' | 'token'> & Pick<Work, 'kind' | 'notBefore' | 'deadlineAt'>,
  ) => {
    const step = { ...next, ...newStep, waitsSince: next.notBefore };
    return db
      .update(work)
      .set({ ...step, ...noLease })
      .where(isHeldBy(work, { resourceId, token }));
  },
);

type Put = Pick<Work, 'resourceId' | 'resourceKind' | 'kind' | 'notBefore' | 'deadlineAt' | 'cookie'>;

const putWork = preparedWrite(
  (
    { db, attempts, instances, volumes, work }: Connection,
    { resourceId, resourceKind, notBefore, ...put }: Put,
  ) => {
    const step = { ...newStep, ...put, notBefore, waitsSince: notBefore };
    // The platform is read from the resource, so that a caller cannot pass another one.
    const platform = sql<string>`coalesce(
      (SELECT ${instances.platform} FROM ${instances} WHERE ${instances.id} = ${resourceId}),
      (SELECT ${volumes.platform} FROM ${volumes} WHERE ${volumes.id} = ${resourceId}),
      (SELECT ${attempts.platform} FROM ${attempts} WHERE ${attempts.ref} = ${resourceId}),
      ${sql.raw(`'${DEFAULT_PLATFORM}'`)})`;
    return db
      .insert(work)
      .values({ resourceId, resourceKind, platform, ...step, ...noLease, fence: 0 })
      .onConflictDoUpdate({ target: work.resourceId, set: step });
  },
);

const finishWork = preparedWrite(({ db, work }: Connection, lease: Pick<Lease, 'resourceId' | 'token'>) =>
  db.delete(work).where(isHeldBy(work, lease)),
);

export function workWriter(connection: Connection, onWrite: () => void): WorkWriter {
  const { db, work } = connection;
  return {
    ...workReader(connection),
    put: async ({ resourceId, resourceKind, kind, notBefore, deadlineAt, cookie = null }) => {
      await putWork(connection, { resourceId, resourceKind, kind, notBefore, deadlineAt, cookie });
      onWrite();
    },
    makeDue: async (resourceId, now) => {
      await db
        .update(work)
        .set({ notBefore: now, waitsSince: earlier(work.waitsSince, now) })
        .where(eq(work.resourceId, resourceId));
      onWrite();
    },
    check: async (lease) => {
      const { resourceId, token } = lease;
      const [row] = await leasedWork(connection, { resourceId, token });
      if (row === undefined) return { state: 'lost' };
      if (row.kind !== lease.kind || row.attempt !== lease.attempt) return { state: 'superseded' };
      return { state: 'held', deadlineAt: row.deadlineAt };
    },
    renew: async (lease, until) => {
      const { resourceId, token } = lease;
      const rows = await db
        .update(work)
        .set({ leaseUntil: until })
        .where(isHeldBy(work, { resourceId, token }))
        .returning({ resourceId: work.resourceId });
      return rows.length > 0;
    },
    release: async ({ resourceId, token, progress }, later) => {
      if (later === undefined) await releaseLease(connection, { resourceId, token });
      else {
        const { attempt = null } = later;
        const step = { ...noWait, progress, ...later, attempt, resourceId, token };
        await continueLater(connection, { ...step, ...encodeRow(work, { progress: step.progress }) });
      }
      onWrite();
    },
    replace: async ({ resourceId, token }, { kind, notBefore, deadlineAt }) => {
      await replaceWork(connection, { resourceId, token, kind, notBefore, deadlineAt });
      onWrite();
    },
    extendDeadlines: async (platform, byMs) =>
      void (await db
        .update(work)
        .set({ deadlineAt: sql`${work.deadlineAt} + ${byMs}` })
        .where(and(eq(work.platform, platform), isNotNull(work.deadlineAt)))),
    finish: async ({ resourceId, token }) => void (await finishWork(connection, { resourceId, token })),
  };
}

type Claim = Parameters<Store['claimWork']>[0] & { token: string; farthest: number };

const claimDue = prepared(
  (
    { db, work, locking, onlyIf }: Connection,
    { platform, owner, now, farthest, leaseUntil, limit, resourceKind, token }: Claim,
  ) => {
    const { notBefore } = work;
    const hasCome = or(lte(work.leaseUntil, now), gt(work.leaseUntil, farthest));
    // Two ranges of an index are each a query before the update, so that each runs once. One combined condition would
    // scan all waiting work.
    const rowsWith = (name: string, moment: SQL) =>
      db.$with(name).as(
        locking.freeRows(
          db
            .select({ resourceId: work.resourceId })
            .from(work)
            .where(
              and(eq(work.platform, platform), eq(work.resourceKind, resourceKind), moment, hasCome, onlyIf),
            )
            .orderBy(asc(notBefore))
            .limit(limit),
        ),
      );
    const due = rowsWith('due', lte(notBefore, now));
    const misdated = rowsWith('misdated', gt(notBefore, farthest));
    const claimed = db
      .select({ resourceId: due.resourceId })
      .from(due)
      .unionAll(db.select({ resourceId: misdated.resourceId }).from(misdated))
      .limit(limit);
    return db
      .with(due, misdated)
      .update(work)
      .set({
        leaseToken: token,
        leaseOwner: owner,
        leaseUntil,
        attempt: sql`${work.attempt} + 1`,
        // The clock is the base, so that the fence also increases across a resource's rows and after a restored backup.
        fence: sql`CASE WHEN ${work.fence} >= ${now} THEN ${work.fence} + 1 ELSE ${now} END`,
      })
      .where(inArray(work.resourceId, claimed))
      .returning();
  },
);

export async function claimWork(
  connection: Connection,
  claim: Parameters<Store['claimWork']>[0],
): Promise<Lease[]> {
  const values = { ...claim, token: randomUUID(), farthest: claim.now + FARTHEST_MS };
  const rows = await claimDue(connection, values);
  return rows.map(({ leaseToken, leaseOwner: _, leaseUntil: until, platform: __, ...step }) => ({
    ...step,
    token: leaseToken ?? '',
    until,
  }));
}

export async function nextWorkAt(connection: Connection, platform: string): Promise<number | null> {
  const moments = (await nextMoments(connection, { platform })).flatMap(({ at }) => at ?? []);
  return moments.length === 0 ? null : Math.min(...moments);
}

export async function takeOverWork({ db, work }: Connection, now: number): Promise<void> {
  await db.update(work).set({
    ...noLease,
    notBefore: earlier(work.notBefore, now),
    waitedAttempt: null,
    lastError: sql`CASE WHEN ${work.waitedAttempt} IS NULL THEN ${work.lastError} END`,
  });
}

function isHeldBy(work: WorkTable, { resourceId, token }: Pick<Lease, 'resourceId' | 'token'>) {
  return and(eq(work.resourceId, resourceId), eq(work.leaseToken, token));
}

function earlier(moment: SQL | Column, other: number): SQL<number> {
  return sql<number>`CASE WHEN ${moment} < ${other} THEN ${moment} ELSE ${other} END`;
}

/** PostgreSQL's driver returns the minimum of 64-bit numbers as text. */
function least(value: Column | SQL): SQL<number | null> {
  return sql<number | null>`min(${value})`.mapWith(Number);
}
