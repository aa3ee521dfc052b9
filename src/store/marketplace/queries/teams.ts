import { and, asc, eq, sql } from 'drizzle-orm';
import type { TeamReader, TeamWriter } from '../../../marketplace/model/store.ts';
import { often } from '../../queries/often.ts';
import type { Connection } from './connection.ts';

export function teamReader(connection: Connection): TeamReader {
  const {
    db,
    tables: { members, teams },
    locking,
  } = connection;
  return {
    byId: async (id) => {
      const [record] = await often(connection, 'team', { id }, (values) =>
        locking.rows(db.select().from(teams).where(eq(teams.id, values.id))),
      );
      return record ?? null;
    },
    bySlug: async (slug) => (await db.select().from(teams).where(eq(teams.slug, slug)))[0] ?? null,
    list: async () => db.select().from(teams).orderBy(asc(teams.createdAt), asc(teams.id)),
    membershipsOf: (userId) =>
      often(connection, 'memberships', { userId }, (values) =>
        db
          .select()
          .from(members)
          .where(eq(members.userId, values.userId))
          .orderBy(asc(members.joinedAt), asc(members.teamId)),
      ),
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
    // Not locked: whoever asks may hold any of the team's rows, and who changes it holds the team's.
    member: async (teamId, userId) => {
      const [record] = await often(connection, 'member', { teamId, userId }, (values) =>
        db
          .select()
          .from(members)
          .where(and(eq(members.teamId, values.teamId), eq(members.userId, values.userId))),
      );
      return record ?? null;
    },
  };
}

export function teamWriter(connection: Connection): TeamWriter {
  const {
    db,
    tables: { members, teams },
  } = connection;
  return {
    ...teamReader(connection),
    insert: async (record) => void (await db.insert(teams).values(record)),
    // The balance is the ledger's.
    update: async ({ balanceMicroUsd: _, ...record }) =>
      void (await db.update(teams).set(record).where(eq(teams.id, record.id))),
    putMember: async (record) =>
      void (await db
        .insert(members)
        .values(record)
        .onConflictDoUpdate({
          target: [members.teamId, members.userId],
          set: { role: record.role, joinedAt: record.joinedAt },
        })),
    removeMember: async (teamId, userId) =>
      void (await db.delete(members).where(and(eq(members.teamId, teamId), eq(members.userId, userId)))),
  };
}
