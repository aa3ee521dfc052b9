import {
  bigint,
  boolean,
  customType,
  doublePrecision,
  integer,
  json,
  pgTable,
  primaryKey,
  text,
} from 'drizzle-orm/pg-core';
import type { InstanceStatus } from '../../contract/instance.ts';
import type { VolumeStatus } from '../../contract/volume.ts';
import type { InstanceSpec } from '../../orchestrator/model/instance-record.ts';
import type { Endpoint } from '../../orchestrator/model/platform-driver.ts';
import type { MarkName } from '../../orchestrator/model/store.ts';
import type { AttachmentState } from '../../orchestrator/model/volume-record.ts';
import type { ResourceKind, Work } from '../../orchestrator/model/work.ts';

// The tables as migrations/ leaves them; a test compares the two. Times and prices are 64-bit numbers. JSON is kept
// as it was written: `jsonb` would sort its keys.

const bytea = customType<{ data: Buffer }>({ dataType: () => 'bytea' });

export const accounts = pgTable('accounts', {
  id: text('id').primaryKey(),
  name: text('name').notNull(),
  passwordHash: text('password_hash'),
  createdAt: bigint('created_at', { mode: 'number' }).notNull(),
});

export const apiKeys = pgTable('api_keys', {
  id: text('id').primaryKey(),
  accountId: text('account_id').notNull(),
  digest: bytea('digest').notNull(),
  prefix: text('prefix').notNull(),
  lastFour: text('last_four').notNull(),
  label: text('label'),
  createdAt: bigint('created_at', { mode: 'number' }).notNull(),
  expiresAt: bigint('expires_at', { mode: 'number' }),
  revokedAt: bigint('revoked_at', { mode: 'number' }),
  lastUsedAt: bigint('last_used_at', { mode: 'number' }),
});

export const tokens = pgTable('tokens', {
  digest: bytea('digest').primaryKey(),
  accountId: text('account_id').notNull(),
  parentDigest: bytea('parent_digest').notNull(),
  createdAt: bigint('created_at', { mode: 'number' }).notNull(),
  expiresAt: bigint('expires_at', { mode: 'number' }).notNull(),
});

export const instances = pgTable('instances', {
  id: text('id').primaryKey(),
  accountId: text('account_id').notNull(),
  ownerRef: text('owner_ref').notNull(),
  name: text('name'),
  offerId: text('offer_id').notNull(),
  region: text('region').notNull(),
  status: text('status').$type<InstanceStatus>().notNull(),
  spec: json('spec').$type<InstanceSpec>().notNull(),
  endpoint: json('endpoint').$type<Endpoint>(),
  hostKeyFingerprint: text('host_key_fingerprint'),
  attachCycle: boolean('attach_cycle').notNull(),
  priceMicroUsdPerHour: bigint('price_micro_usd_per_hour', { mode: 'number' }).notNull(),
  error: text('error'),
  createdAt: bigint('created_at', { mode: 'number' }).notNull(),
  updatedAt: bigint('updated_at', { mode: 'number' }).notNull(),
  version: integer('version').notNull(),
  createOpenUntil: bigint('create_open_until', { mode: 'number' }),
});

export const volumes = pgTable('volumes', {
  id: text('id').primaryKey(),
  accountId: text('account_id').notNull(),
  ownerRef: text('owner_ref').notNull(),
  name: text('name').notNull(),
  sizeGb: doublePrecision('size_gb').notNull(),
  region: text('region').notNull(),
  type: text('type'),
  status: text('status').$type<VolumeStatus>().notNull(),
  priceMicroUsdPerHour: bigint('price_micro_usd_per_hour', { mode: 'number' }).notNull(),
  createdAt: bigint('created_at', { mode: 'number' }).notNull(),
  deletedAt: bigint('deleted_at', { mode: 'number' }),
  createOpenUntil: bigint('create_open_until', { mode: 'number' }),
  requestId: text('request_id'),
});

export const attachments = pgTable(
  'attachments',
  {
    volumeId: text('volume_id').notNull(),
    instanceId: text('instance_id').notNull(),
    state: text('state').$type<AttachmentState>().notNull(),
  },
  (table) => [primaryKey({ columns: [table.volumeId, table.instanceId] })],
);

export const claims = pgTable('claims', {
  instanceId: text('instance_id').primaryKey(),
  offerId: text('offer_id').notNull(),
  region: text('region').notNull(),
});

export const storageClaims = pgTable('storage_claims', {
  volumeId: text('volume_id').primaryKey(),
  region: text('region').notNull(),
  mb: bigint('mb', { mode: 'number' }).notNull(),
});

export const work = pgTable('work', {
  resourceId: text('resource_id').primaryKey(),
  resourceKind: text('resource_kind').$type<ResourceKind>().notNull(),
  kind: text('kind').$type<Work['kind']>().notNull(),
  cookie: text('cookie'),
  attempt: integer('attempt').notNull(),
  notBefore: bigint('not_before', { mode: 'number' }).notNull(),
  deadlineAt: bigint('deadline_at', { mode: 'number' }),
  lastError: text('last_error'),
  leaseToken: text('lease_token'),
  leaseOwner: text('lease_owner'),
  leaseUntil: bigint('lease_until', { mode: 'number' }).notNull(),
  waitsSince: bigint('waits_since', { mode: 'number' }),
});

export const marks = pgTable('marks', {
  name: text('name').$type<MarkName>().primaryKey(),
  at: bigint('at', { mode: 'number' }).notNull(),
});

/** One row. */
export const installation = pgTable('installation', {
  only: integer('only').primaryKey(),
  id: text('id').notNull(),
  platform: text('platform').notNull(),
});

export const losses = pgTable('losses', {
  instanceId: text('instance_id').primaryKey(),
  at: bigint('at', { mode: 'number' }).notNull(),
});

export const idempotency = pgTable(
  'idempotency',
  {
    accountId: text('account_id').notNull(),
    key: text('key').notNull(),
    requestDigest: bytea('request_digest').notNull(),
    resourceId: text('resource_id').notNull(),
    createdAt: bigint('created_at', { mode: 'number' }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.key] })],
);
