import {
  and,
  asc,
  count,
  eq,
  exists,
  getTableColumns,
  gt,
  inArray,
  isNotNull,
  isNull,
  lte,
  or,
  type SQL,
  sql,
  sum,
} from 'drizzle-orm';
import type {
  DiscountReader,
  DiscountWriter,
  TeamReader,
  TeamWriter,
} from '../../../marketplace/model/people-store.ts';
import { contains } from '../../queries/connection.ts';
import { prepared, preparedWrite } from '../../queries/prepared.ts';
import { firstOf, upsert } from '../../queries/rows.ts';
import type { Connection } from './connection.ts';
import { isLater } from './pages.ts';
import { accruedOf } from './postings.ts';

/** Checks are scheduled at most an hour ahead: a later one was scheduled with a wrong clock, and is due. */
const FARTHEST_CHECK_MS = 2 * 3_600_000;

/** The columns of a team's record, without its due time. */
function recordOf({ teams }: Connection) {
  const { nextCheckAt, ...record } = getTableColumns(teams);
  return record;
}

const teamById = prepared((connection: Connection, { id }: { id: string }) => {
  const { db, teams, locking } = connection;
  return locking.rows(db.select(recordOf(connection)).from(teams).where(eq(teams.id, id)));
});

const setDue = preparedWrite(({ db, teams, segments }: Connection, { id }: { id: string }) => {
  const open = db
    .select({ id: segments.id })
    .from(segments)
    .where(and(eq(segments.teamId, id), isNull(segments.endedAt)));
  return db
    .update(teams)
    .set({ nextCheckAt: 0 })
    .where(and(eq(teams.id, id), or(exists(open), isNotNull(teams.nextCheckAt))));
});

/** Makes the team due in the billing job's next round, unless it has nothing billed or watched. */
export async function becomesDue(connection: Connection, id: string): Promise<void> {
  await setDue(connection, { id });
}

const membershipsOf = prepared(({ db, members }: Connection, { userId }: { userId: string }) =>
  db
    .select()
    .from(members)
    .where(eq(members.userId, userId))
    .orderBy(asc(members.joinedAt), asc(members.teamId)),
);

const memberOf = prepared(
  ({ db, members }: Connection, { teamId, userId }: { teamId: string; userId: string }) =>
    db
      .select()
      .from(members)
      .where(and(eq(members.teamId, teamId), eq(members.userId, userId))),
);

const standingOf = prepared(
  ({ db, members, teams, users }: Connection, { teamId, userId }: { teamId: string; userId: string }) =>
    db
      .select({
        role: members.role,
        memberRights: teams.memberRights,
        userSuspension: users.suspension,
        teamSuspension: teams.suspension,
      })
      .from(teams)
      .innerJoin(users, eq(users.id, userId))
      .leftJoin(members, and(eq(members.teamId, teams.id), eq(members.userId, users.id)))
      .where(eq(teams.id, teamId)),
);

const discountsOfTeam = prepared(({ db, discounts }: Connection, { teamId }: { teamId: string }) =>
  db
    .select()
    .from(discounts)
    .where(eq(discounts.teamId, teamId))
    .orderBy(asc(discounts.startsAt), asc(discounts.id)),
);

export function teamReader(connection: Connection): TeamReader {
  const { db, members, segments, teams } = connection;
  return {
    byId: (id) => firstOf(teamById(connection, { id })),
    bySlug: (slug) => firstOf(db.select(recordOf(connection)).from(teams).where(eq(teams.slug, slug))),
    list: async () =>
      db.select(recordOf(connection)).from(teams).orderBy(asc(teams.createdAt), asc(teams.id)),
    page: async ({ text, after = '', limit }) =>
      db
        .select(recordOf(connection))
        .from(teams)
        .where(
          and(
            gt(teams.slug, after),
            text === undefined
              ? undefined
              : or(...[teams.id, teams.slug, teams.name].map((of) => contains(connection, of, text))),
          ),
        )
        .orderBy(asc(teams.slug))
        .limit(limit),
    spending: async (now) => {
      return db
        .select({
          ...recordOf(connection),
          burnMicroUsdPerHour: sum(segments.originalRateMicroUsdPerHour).mapWith(Number),
          mostAccruedMicroUsd: sql`sum(${accruedOf(segments, now)})`.mapWith(Number),
        })
        .from(teams)
        .innerJoin(segments, and(eq(segments.teamId, teams.id), isNull(segments.endedAt)))
        .groupBy(teams.id)
        .orderBy(asc(teams.slug));
    },
    debt: async (now) => {
      const accrued = sql`coalesce(sum(${accruedOf(segments, now)}), 0)`;
      const balances = db
        .select({ left: sql<number>`${teams.balanceMicroUsd} - ${accrued}`.as('left_over') })
        .from(teams)
        .leftJoin(segments, and(eq(segments.teamId, teams.id), isNull(segments.endedAt)))
        .groupBy(teams.id)
        .as('balances');
      const owed = sql`sum(CASE WHEN ${balances.left} < 0 THEN -${balances.left} ELSE 0 END)`.mapWith(Number);
      return (await db.select({ owed }).from(balances))[0]?.owed ?? 0;
    },
    count: async () => (await db.select({ count: count() }).from(teams))[0]?.count ?? 0,
    due: async ({ now, after, limit }) => {
      const read = (isDue: SQL, most: number) =>
        db
          .select({ at: teams.nextCheckAt, id: teams.id })
          .from(teams)
          .where(and(isDue, isLater(teams.nextCheckAt, teams.id, after)))
          .orderBy(asc(teams.nextCheckAt), asc(teams.id))
          .limit(most);
      // Two ranges of the index. One combined condition would scan all waiting rows.
      const due = await read(lte(teams.nextCheckAt, now), limit);
      const wrong =
        due.length < limit
          ? await read(gt(teams.nextCheckAt, now + FARTHEST_CHECK_MS), limit - due.length)
          : [];
      return [...due, ...wrong].map(({ at, id }) => ({ at: at ?? 0, id }));
    },
    membershipsOf: (userId) => membershipsOf(connection, { userId }),
    members: async (teamId) =>
      db
        .select()
        .from(members)
        .where(eq(members.teamId, teamId))
        .orderBy(
          sql`CASE ${members.role} WHEN 'owner' THEN 0 ELSE 1 END`,
          asc(members.joinedAt),
          asc(members.userId),
        ),
    // Takes no lock: the caller may hold any of the team's rows, and every change of a member locks the team's row.
    member: (teamId, userId) => firstOf(memberOf(connection, { teamId, userId })),
    standing: (teamId, userId) => firstOf(standingOf(connection, { teamId, userId })),
    suspended: async () =>
      db.select(recordOf(connection)).from(teams).where(isNotNull(teams.suspension)).orderBy(asc(teams.id)),
  };
}

export function teamWriter(connection: Connection): TeamWriter {
  const { db, members, teams } = connection;
  return {
    ...teamReader(connection),
    insert: async (record) => void (await db.insert(teams).values(record)),
    // Only the ledger writes the balance.
    update: async ({ balanceMicroUsd: _, ...record }) =>
      void (await db.update(teams).set(record).where(eq(teams.id, record.id))),
    scheduleCheck: async (id, nextCheckAt) =>
      void (await db.update(teams).set({ nextCheckAt }).where(eq(teams.id, id))),
    putMember: (member) => upsert(connection, members, ['teamId', 'userId'], member),
    removeMember: async (teamId, userId) =>
      void (await db.delete(members).where(and(eq(members.teamId, teamId), eq(members.userId, userId)))),
  };
}

export function discountReader(connection: Connection): DiscountReader {
  const { db, discounts, locking } = connection;
  return {
    byId: (id) => firstOf(locking.rows(db.select().from(discounts).where(eq(discounts.id, id)))),
    ofTeam: (teamId) => discountsOfTeam(connection, { teamId }),
    ofTeams: async (teamIds) =>
      db
        .select()
        .from(discounts)
        .where(inArray(discounts.teamId, [...teamIds]))
        .orderBy(asc(discounts.startsAt), asc(discounts.id)),
    list: async () => db.select().from(discounts).orderBy(asc(discounts.startsAt), asc(discounts.id)),
  };
}

export function discountWriter(connection: Connection): DiscountWriter {
  const { db, discounts } = connection;
  return {
    ...discountReader(connection),
    insert: async (record) => {
      await db.insert(discounts).values(record);
      await becomesDue(connection, record.teamId);
    },
    update: async (record) => {
      await db.update(discounts).set(record).where(eq(discounts.id, record.id));
      await becomesDue(connection, record.teamId);
    },
  };
}
