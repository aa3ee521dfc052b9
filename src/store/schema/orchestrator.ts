import { sql } from 'drizzle-orm';
import type { InstanceStatus } from '../../contract/instance.ts';
import type { VolumeStatus } from '../../contract/volume.ts';
import type { CordonKind, Refusals } from '../../orchestrator/model/cordon.ts';
import type { DestroyOrder } from '../../orchestrator/model/destroy-order.ts';
import type { HistoryEvent } from '../../orchestrator/model/history.ts';
import type { MarkName } from '../../orchestrator/model/marks.ts';
import type { Endpoint } from '../../orchestrator/model/platform-driver.ts';
import type { AttachmentState, InstanceSpec } from '../../orchestrator/model/records.ts';
import type { Sighting, SightingDetail } from '../../orchestrator/model/sighting.ts';
import type { ResourceKind, Work, WorkProgress } from '../../orchestrator/model/work.ts';
import { operatorTables } from './operators.ts';
import type { Dialect } from './postgres.ts';

/**
 * The orchestrator's tables, in either dialect. A change here needs a migration: `npm run generate -- migration NAME`
 * writes it. STRICT tables are in the migrations only.
 */
export function orchestratorTables(dialect: Dialect) {
  const {
    table,
    text,
    idOf,
    bytes,
    boolean,
    integer,
    bigint,
    sequence,
    double,
    json,
    primaryKey,
    index,
    check,
  } = dialect;
  const accounts = table('accounts', {
    id: text('id').primaryKey(),
    name: text('name').notNull().unique('accounts_name_key'),
    passwordHash: text('password_hash'),
    createdAt: bigint('created_at').notNull(),
    closedAt: bigint('closed_at'),
  });

  const apiKeys = table('api_keys', {
    id: text('id').primaryKey(),
    accountId: idOf('account_id', () => accounts.id),
    digest: bytes('digest').notNull().unique('api_keys_digest_key'),
    prefix: text('prefix').notNull(),
    lastFour: text('last_four').notNull(),
    label: text('label'),
    createdAt: bigint('created_at').notNull(),
    expiresAt: bigint('expires_at'),
    revokedAt: bigint('revoked_at'),
    lastUsedAt: bigint('last_used_at'),
  });

  const tokens = table(
    'tokens',
    {
      digest: bytes('digest').primaryKey(),
      accountId: idOf('account_id', () => accounts.id),
      parentDigest: bytes('parent_digest').notNull(),
      createdAt: bigint('created_at').notNull(),
      expiresAt: bigint('expires_at').notNull(),
    },
    (t) => [
      index('tokens_by_expiry').on(t.expiresAt),
      index('tokens_by_account').on(t.accountId, t.expiresAt),
    ],
  );

  const instances = table(
    'instances',
    {
      id: text('id').primaryKey(),
      accountId: idOf('account_id', () => accounts.id),
      ownerRef: text('owner_ref').notNull().unique('instances_owner_ref_key'),
      name: text('name'),
      offerId: text('offer_id').notNull(),
      region: text('region').notNull(),
      status: text('status').$type<InstanceStatus>().notNull(),
      spec: json('spec').$type<InstanceSpec>().notNull(),
      endpoint: json('endpoint').$type<Endpoint>(),
      hostKeyFingerprint: text('host_key_fingerprint'),
      attachCycle: boolean('attach_cycle').notNull(),
      priceMicroUsdPerHour: bigint('price_micro_usd_per_hour').notNull(),
      error: text('error'),
      createdAt: bigint('created_at').notNull(),
      updatedAt: bigint('updated_at').notNull(),
      version: integer('version').notNull(),
      createOpenUntil: bigint('create_open_until'),
      platform: text('platform').notNull(),
      host: text('host'),
      destroyOrder: json('destroy_order').$type<DestroyOrder>(),
    },
    (t) => [
      index('instances_live_in_pages')
        .on(t.accountId, t.createdAt, t.id)
        .where(sql`${t.status} <> 'DESTROYED'`),
      index('instances_live_by_age').on(t.createdAt, t.id).where(sql`${t.status} <> 'DESTROYED'`),
      index('instances_live_by_platform')
        .on(t.platform, t.host, t.status)
        .where(sql`${t.status} <> 'DESTROYED'`),
      index('instances_destroyed_by_platform')
        .on(t.platform, t.updatedAt)
        .where(sql`${t.status} = 'DESTROYED'`),
    ],
  );

  const volumes = table(
    'volumes',
    {
      id: text('id').primaryKey(),
      accountId: idOf('account_id', () => accounts.id),
      ownerRef: text('owner_ref').notNull().unique('volumes_owner_ref_key'),
      name: text('name').notNull(),
      sizeGb: double('size_gb').notNull(),
      region: text('region').notNull(),
      type: text('type'),
      status: text('status').$type<VolumeStatus>().notNull(),
      priceMicroUsdPerHour: bigint('price_micro_usd_per_hour').notNull(),
      createdAt: bigint('created_at').notNull(),
      deletedAt: bigint('deleted_at'),
      createOpenUntil: bigint('create_open_until'),
      requestId: text('request_id'),
      platform: text('platform').notNull(),
      host: text('host'),
      destroyOrder: json('destroy_order').$type<DestroyOrder>(),
    },
    (t) => [
      index('volumes_live_by_account').on(t.accountId).where(sql`${t.deletedAt} IS NULL`),
      index('volumes_deleted_by_platform').on(t.platform, t.deletedAt).where(sql`${t.deletedAt} IS NOT NULL`),
    ],
  );

  const attachments = table(
    'attachments',
    {
      volumeId: idOf('volume_id', () => volumes.id),
      instanceId: idOf('instance_id', () => instances.id),
      state: text('state').$type<AttachmentState>().notNull(),
    },
    (t) => [
      primaryKey({ columns: [t.volumeId, t.instanceId] }),
      index('attachments_by_instance').on(t.instanceId),
    ],
  );

  const claims = table(
    'claims',
    {
      instanceId: text('instance_id')
        .primaryKey()
        .references(() => instances.id),
      offerId: text('offer_id').notNull(),
      region: text('region').notNull(),
    },
    (t) => [index('claims_by_placement').on(t.offerId, t.region)],
  );

  const storageClaims = table(
    'storage_claims',
    {
      volumeId: text('volume_id')
        .primaryKey()
        .references(() => volumes.id),
      region: text('region').notNull(),
      mb: bigint('mb').notNull(),
    },
    (t) => [index('storage_claims_by_region').on(t.region, t.mb)],
  );

  const work = table(
    'work',
    {
      resourceId: text('resource_id').primaryKey(),
      resourceKind: text('resource_kind').$type<ResourceKind>().notNull(),
      kind: text('kind').$type<Work['kind']>().notNull(),
      cookie: text('cookie'),
      attempt: integer('attempt').notNull(),
      notBefore: bigint('not_before').notNull(),
      deadlineAt: bigint('deadline_at'),
      lastError: text('last_error'),
      progress: json('progress').$type<WorkProgress>(),
      leaseToken: text('lease_token'),
      leaseOwner: text('lease_owner'),
      leaseUntil: bigint('lease_until').notNull(),
      waitsSince: bigint('waits_since').notNull(),
      waitedAttempt: integer('waited_attempt'),
      isHeld: boolean('is_held').notNull(),
      /** The platform of the resource, by which work is claimed. */
      platform: text('platform').notNull(),
      fence: bigint('fence').notNull(),
    },
    (t) => [
      index('work_of_platform_by_due').on(t.platform, t.resourceKind, t.notBefore),
      index('work_of_platform_by_lease').on(t.platform, t.leaseUntil, t.notBefore),
    ],
  );

  /** The table has no reference: a tombstone may be pruned before the remains of one of its attempts are removed. */
  const attempts = table(
    'attempts',
    {
      ref: text('ref').primaryKey(),
      resourceId: text('resource_id').notNull(),
      resourceKind: text('resource_kind').$type<ResourceKind>().notNull(),
      platform: text('platform').notNull(),
      host: text('host'),
      openedAt: bigint('opened_at').notNull(),
      closedAt: bigint('closed_at'),
      destroyOrder: json('destroy_order').$type<DestroyOrder>().notNull(),
    },
    (t) => [index('attempts_by_resource').on(t.resourceId)],
  );

  const listings = table(
    'listings',
    {
      platform: text('platform').notNull(),
      resourceKind: text('resource_kind').$type<ResourceKind>().notNull(),
      beganAt: bigint('began_at').notNull(),
      endedAt: bigint('ended_at').notNull(),
      isComplete: boolean('is_complete').notNull(),
      silentHosts: json('silent_hosts').$type<readonly string[]>().notNull(),
    },
    (t) => [primaryKey({ columns: [t.platform, t.resourceKind] })],
  );

  const sightings = table(
    'sightings',
    {
      platform: text('platform').notNull(),
      resourceKind: text('resource_kind').$type<ResourceKind>().notNull(),
      what: text('what').$type<Sighting['what']>().notNull(),
      /** The name on the platform. An item that the platform lists twice has two names. */
      name: text('name').notNull(),
      ref: text('ref').notNull(),
      resourceId: text('resource_id').notNull(),
      host: text('host'),
      since: bigint('since').notNull(),
      seenAt: bigint('seen_at').notNull(),
      detail: json('detail').$type<SightingDetail>().notNull(),
    },
    (t) => [
      primaryKey({ columns: [t.platform, t.resourceKind, t.what, t.name] }),
      index('sightings_by_resource').on(t.resourceId),
    ],
  );

  const marks = table('marks', {
    name: text('name').$type<MarkName>().primaryKey(),
    at: bigint('at').notNull(),
  });

  /** One row. */
  const installation = table(
    'installation',
    {
      only: integer('only').primaryKey(),
      id: text('id').notNull(),
      platform: text('platform').notNull(),
    },
    (t) => [check('installation_only_check', sql`${t.only} = 1`)],
  );

  const losses = table(
    'losses',
    {
      instanceId: text('instance_id')
        .primaryKey()
        .references(() => instances.id),
      at: bigint('at').notNull(),
    },
    (t) => [index('losses_by_time').on(t.at)],
  );

  const cordons = table('cordons', {
    id: text('id').primaryKey(),
    kind: text('kind').$type<CordonKind>().notNull(),
    name: text('name').notNull(),
    platform: text('platform'),
    since: bigint('since').notNull(),
    until: bigint('until'),
    isMaintenance: boolean('is_maintenance').notNull(),
    reason: text('reason'),
    by: text('by').notNull(),
    refusals: json('refusals').$type<Refusals | null>(),
  });

  /** The table has no reference, because a row outlives its instance. */
  const history = table(
    'history',
    {
      id: sequence('id'),
      instanceId: text('instance_id').notNull(),
      at: bigint('at').notNull(),
      cause: text('cause').$type<HistoryEvent['cause']>().notNull(),
      attempt: integer('attempt'),
      fromStatus: text('from_status').$type<InstanceStatus>(),
      toStatus: text('to_status').$type<InstanceStatus>(),
      next: text('next'),
      detail: text('detail'),
      calls: json('calls').$type<HistoryEvent['calls']>().notNull(),
      console: text('console'),
      tookMs: bigint('took_ms'),
      by: json('by').$type<HistoryEvent['by']>(),
    },
    (t) => [
      index('history_by_instance').on(t.instanceId),
      index('history_by_time').on(t.at),
      index('history_outcomes')
        .on(t.at)
        .where(sql`${t.fromStatus} = 'PROVISIONING' OR ${t.toStatus} = 'ERROR'`),
    ],
  );

  const idempotency = table(
    'idempotency',
    {
      accountId: idOf('account_id', () => accounts.id),
      key: text('key').notNull(),
      requestDigest: bytes('request_digest').notNull(),
      resourceId: text('resource_id').notNull(),
      createdAt: bigint('created_at').notNull(),
    },
    (t) => [primaryKey({ columns: [t.accountId, t.key] }), index('idempotency_by_age').on(t.createdAt)],
  );

  return {
    accounts,
    apiKeys,
    tokens,
    instances,
    volumes,
    attachments,
    claims,
    storageClaims,
    work,
    attempts,
    listings,
    sightings,
    marks,
    installation,
    losses,
    cordons,
    history,
    ...operatorTables(dialect),
    idempotency,
  };
}
