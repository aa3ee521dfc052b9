import { sql } from 'drizzle-orm';
import type {
  BalanceWatch,
  DiscountRecord,
  MemberRecord,
  Suspension,
  TeamRecord,
} from '../../marketplace/model/people.ts';
import type { Dialect } from './postgres.ts';

export type PeopleTables = ReturnType<typeof peopleTables>;

/** Users, their teams, and rows that belong to either. */
export function peopleTables({
  table,
  text,
  idOf,
  verbatim,
  bytes,
  boolean,
  integer,
  bigint,
  double,
  json,
  primaryKey,
  index,
}: Dialect) {
  const users = table(
    'users',
    {
      id: text('id').primaryKey(),
      email: text('email').notNull().unique('users_email_key'),
      name: text('name').notNull(),
      currentTeamId: text('current_team_id'),
      mayMakeKeys: boolean('may_make_keys').notNull(),
      createLimit: integer('create_limit'),
      minimumRuntimeMinutes: double('minimum_runtime_minutes'),
      wantsDeploymentMail: boolean('wants_deployment_mail').notNull(),
      wantsMarketingMail: boolean('wants_marketing_mail').notNull(),
      createdAt: bigint('created_at').notNull(),
      suspension: json('suspension').$type<Suspension>(),
    },
    (t) => [index('users_suspended').on(t.id).where(sql`${t.suspension} IS NOT NULL`)],
  );

  const apiKeys = table(
    'api_keys',
    {
      id: text('id').primaryKey(),
      userId: idOf('user_id', () => users.id),
      digest: bytes('digest').notNull().unique('api_keys_digest_key'),
      prefix: text('prefix').notNull(),
      lastFour: text('last_four').notNull(),
      label: text('label'),
      createdAt: bigint('created_at').notNull(),
      expiresAt: bigint('expires_at'),
      revokedAt: bigint('revoked_at'),
      lastUsedAt: bigint('last_used_at'),
    },
    (t) => [index('api_keys_by_user').on(t.userId)],
  );

  const teams = table(
    'teams',
    {
      id: text('id').primaryKey(),
      name: text('name').notNull(),
      slug: text('slug').notNull().unique('teams_slug_key'),
      ownerId: idOf('owner_id', () => users.id),
      balanceMicroUsd: bigint('balance_micro_usd').notNull(),
      watch: json('watch').$type<BalanceWatch>().notNull(),
      createdAt: bigint('created_at').notNull(),
      memberRights: text('member_rights').$type<TeamRecord['memberRights']>().notNull(),
      suspension: json('suspension').$type<Suspension>(),
      // Not in the record. A change of a price or a balance sets this to 0, the billing job to a later time.
      nextCheckAt: bigint('next_check_at'),
    },
    (t) => [
      index('teams_due').on(t.nextCheckAt, t.id).where(sql`${t.nextCheckAt} IS NOT NULL`),
      index('teams_suspended').on(t.id).where(sql`${t.suspension} IS NOT NULL`),
    ],
  );

  const members = table(
    'members',
    {
      teamId: idOf('team_id', () => teams.id),
      userId: idOf('user_id', () => users.id),
      role: text('role').$type<MemberRecord['role']>().notNull(),
      joinedAt: bigint('joined_at').notNull(),
    },
    (t) => [primaryKey({ columns: [t.teamId, t.userId] }), index('members_by_user').on(t.userId)],
  );

  const discounts = table(
    'discounts',
    {
      id: text('id').primaryKey(),
      teamId: idOf('team_id', () => teams.id),
      source: text('source').$type<DiscountRecord['source']>().notNull(),
      percentage: double('percentage').notNull(),
      startsAt: bigint('starts_at').notNull(),
      endsAt: bigint('ends_at'),
    },
    (t) => [index('discounts_by_team').on(t.teamId, t.startsAt)],
  );

  const stockAlerts = table(
    'stock_alerts',
    {
      id: text('id').primaryKey(),
      userId: idOf('user_id', () => users.id),
      providerId: text('provider_id').notNull(),
      offerId: text('offer_id').notNull(),
      region: text('region'),
      createdAt: bigint('created_at').notNull(),
      wasSoldOut: boolean('was_sold_out').notNull(),
    },
    (t) => [index('stock_alerts_by_user').on(t.userId)],
  );

  const sshKeys = table(
    'ssh_keys',
    {
      id: text('id').primaryKey(),
      userId: idOf('user_id', () => users.id),
      teamId: idOf('team_id', () => teams.id),
      name: verbatim('name').notNull(),
      publicKey: text('public_key').notNull(),
      fingerprint: text('fingerprint').notNull(),
      isTemporary: boolean('is_temporary').notNull(),
      createdAt: bigint('created_at').notNull(),
    },
    (t) => [index('ssh_keys_by_team').on(t.teamId, t.createdAt)],
  );

  const idempotency = table(
    'idempotency',
    {
      userId: idOf('user_id', () => users.id),
      key: text('key').notNull(),
      requestDigest: bytes('request_digest').notNull(),
      resourceId: text('resource_id').notNull(),
      createdAt: bigint('created_at').notNull(),
    },
    (t) => [primaryKey({ columns: [t.userId, t.key] })],
  );

  return { users, apiKeys, teams, members, discounts, stockAlerts, sshKeys, idempotency };
}
