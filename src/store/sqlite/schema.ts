import { blob, integer, primaryKey, real, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import type { InstanceStatus } from '../../contract/instance.ts';
import type { VolumeStatus } from '../../contract/volume.ts';
import type { InstanceSpec } from '../../orchestrator/model/instance-record.ts';
import type { Endpoint } from '../../orchestrator/model/platform-driver.ts';
import type { MarkName } from '../../orchestrator/model/store.ts';
import type { AttachmentState } from '../../orchestrator/model/volume-record.ts';
import type { ResourceKind, Work } from '../../orchestrator/model/work.ts';

// The tables as migrations/ leaves them; a test compares the two.

export const accounts = sqliteTable('accounts', {
  id: text('id').primaryKey(),
  name: text('name').notNull(),
  passwordHash: text('password_hash'),
  createdAt: integer('created_at').notNull(),
});

export const apiKeys = sqliteTable('api_keys', {
  id: text('id').primaryKey(),
  accountId: text('account_id').notNull(),
  digest: blob('digest', { mode: 'buffer' }).notNull(),
  prefix: text('prefix').notNull(),
  lastFour: text('last_four').notNull(),
  label: text('label'),
  createdAt: integer('created_at').notNull(),
  expiresAt: integer('expires_at'),
  revokedAt: integer('revoked_at'),
  lastUsedAt: integer('last_used_at'),
});

export const tokens = sqliteTable('tokens', {
  digest: blob('digest', { mode: 'buffer' }).primaryKey(),
  accountId: text('account_id').notNull(),
  parentDigest: blob('parent_digest', { mode: 'buffer' }).notNull(),
  createdAt: integer('created_at').notNull(),
  expiresAt: integer('expires_at').notNull(),
});

export const instances = sqliteTable('instances', {
  id: text('id').primaryKey(),
  accountId: text('account_id').notNull(),
  ownerRef: text('owner_ref').notNull(),
  name: text('name'),
  offerId: text('offer_id').notNull(),
  region: text('region').notNull(),
  status: text('status').$type<InstanceStatus>().notNull(),
  spec: text('spec', { mode: 'json' }).$type<InstanceSpec>().notNull(),
  endpoint: text('endpoint', { mode: 'json' }).$type<Endpoint>(),
  hostKeyFingerprint: text('host_key_fingerprint'),
  attachCycle: integer('attach_cycle', { mode: 'boolean' }).notNull(),
  priceMicroUsdPerHour: integer('price_micro_usd_per_hour').notNull(),
  error: text('error'),
  createdAt: integer('created_at').notNull(),
  updatedAt: integer('updated_at').notNull(),
  version: integer('version').notNull(),
  createOpenUntil: integer('create_open_until'),
});

export const volumes = sqliteTable('volumes', {
  id: text('id').primaryKey(),
  accountId: text('account_id').notNull(),
  ownerRef: text('owner_ref').notNull(),
  name: text('name').notNull(),
  sizeGb: real('size_gb').notNull(),
  region: text('region').notNull(),
  type: text('type'),
  status: text('status').$type<VolumeStatus>().notNull(),
  priceMicroUsdPerHour: integer('price_micro_usd_per_hour').notNull(),
  createdAt: integer('created_at').notNull(),
  deletedAt: integer('deleted_at'),
  createOpenUntil: integer('create_open_until'),
  requestId: text('request_id'),
});

export const attachments = sqliteTable(
  'attachments',
  {
    volumeId: text('volume_id').notNull(),
    instanceId: text('instance_id').notNull(),
    state: text('state').$type<AttachmentState>().notNull(),
  },
  (table) => [primaryKey({ columns: [table.volumeId, table.instanceId] })],
);

export const claims = sqliteTable('claims', {
  instanceId: text('instance_id').primaryKey(),
  offerId: text('offer_id').notNull(),
  region: text('region').notNull(),
});

export const storageClaims = sqliteTable('storage_claims', {
  volumeId: text('volume_id').primaryKey(),
  region: text('region').notNull(),
  mb: integer('mb').notNull(),
});

export const work = sqliteTable('work', {
  resourceId: text('resource_id').primaryKey(),
  resourceKind: text('resource_kind').$type<ResourceKind>().notNull(),
  kind: text('kind').$type<Work['kind']>().notNull(),
  cookie: text('cookie'),
  attempt: integer('attempt').notNull(),
  notBefore: integer('not_before').notNull(),
  deadlineAt: integer('deadline_at'),
  lastError: text('last_error'),
  leaseToken: text('lease_token'),
  leaseOwner: text('lease_owner'),
  leaseUntil: integer('lease_until').notNull(),
  waitsSince: integer('waits_since'),
});

export const marks = sqliteTable('marks', {
  name: text('name').$type<MarkName>().primaryKey(),
  at: integer('at').notNull(),
});

/** One row. */
export const installation = sqliteTable('installation', {
  only: integer('only').primaryKey(),
  id: text('id').notNull(),
  platform: text('platform').notNull(),
});

export const losses = sqliteTable('losses', {
  instanceId: text('instance_id').primaryKey(),
  at: integer('at').notNull(),
});

export const idempotency = sqliteTable(
  'idempotency',
  {
    accountId: text('account_id').notNull(),
    key: text('key').notNull(),
    requestDigest: blob('request_digest', { mode: 'buffer' }).notNull(),
    resourceId: text('resource_id').notNull(),
    createdAt: integer('created_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.accountId, table.key] })],
);
