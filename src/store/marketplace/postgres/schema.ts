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
import type { PortForward } from '../../../contract/instance.ts';
import type {
  Action,
  Cleanup,
  DeploymentRecord,
  Launch,
  SshProof,
  Suspicion,
} from '../../../marketplace/model/deployment-record.ts';
import type {
  LedgerAccount,
  LedgerTransactionKind,
  LossRecord,
  MailClass,
  SegmentRecord,
  SubjectKind,
} from '../../../marketplace/model/ledger-records.ts';
import type { BalanceWatch, DiscountRecord, MemberRecord } from '../../../marketplace/model/people.ts';
import type { AttachmentRecord, VolumeRecord } from '../../../marketplace/model/volume-record.ts';

// The tables as migrations/ leaves them; a test compares the two. Times and amounts are 64-bit numbers. JSON is kept as
// it was written: `jsonb` would sort its keys.

const bytea = customType<{ data: Buffer }>({ dataType: () => 'bytea' });
/** Any text that somebody else chose: PostgreSQL's own has no NUL, and both databases' no lone surrogate. */
const verbatim = customType<{ data: string; driverData: string }>({
  dataType: () => 'json',
  toDriver: (text) => JSON.stringify(text),
});

export const users = pgTable('users', {
  id: text('id').primaryKey(),
  email: text('email').notNull(),
  name: text('name').notNull(),
  currentTeamId: text('current_team_id'),
  mayMakeKeys: boolean('may_make_keys').notNull(),
  createLimit: integer('create_limit'),
  minimumRuntimeMinutes: doublePrecision('minimum_runtime_minutes'),
  wantsDeploymentMail: boolean('wants_deployment_mail').notNull(),
  wantsMarketingMail: boolean('wants_marketing_mail').notNull(),
  createdAt: bigint('created_at', { mode: 'number' }).notNull(),
});

export const apiKeys = pgTable('api_keys', {
  id: text('id').primaryKey(),
  userId: text('user_id').notNull(),
  digest: bytea('digest').notNull(),
  prefix: text('prefix').notNull(),
  lastFour: text('last_four').notNull(),
  label: text('label'),
  createdAt: bigint('created_at', { mode: 'number' }).notNull(),
  expiresAt: bigint('expires_at', { mode: 'number' }),
  revokedAt: bigint('revoked_at', { mode: 'number' }),
  lastUsedAt: bigint('last_used_at', { mode: 'number' }),
});

export const teams = pgTable('teams', {
  id: text('id').primaryKey(),
  name: text('name').notNull(),
  slug: text('slug').notNull(),
  ownerId: text('owner_id').notNull(),
  balanceMicroUsd: bigint('balance_micro_usd', { mode: 'number' }).notNull(),
  watch: json('watch').$type<BalanceWatch>().notNull(),
  createdAt: bigint('created_at', { mode: 'number' }).notNull(),
});

export const members = pgTable(
  'members',
  {
    teamId: text('team_id').notNull(),
    userId: text('user_id').notNull(),
    role: text('role').$type<MemberRecord['role']>().notNull(),
    joinedAt: bigint('joined_at', { mode: 'number' }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.teamId, table.userId] })],
);

export const discounts = pgTable('discounts', {
  id: text('id').primaryKey(),
  teamId: text('team_id').notNull(),
  source: text('source').$type<DiscountRecord['source']>().notNull(),
  percentage: doublePrecision('percentage').notNull(),
  startsAt: bigint('starts_at', { mode: 'number' }).notNull(),
  endsAt: bigint('ends_at', { mode: 'number' }),
});

export const stockAlerts = pgTable('stock_alerts', {
  id: text('id').primaryKey(),
  userId: text('user_id').notNull(),
  providerId: text('provider_id').notNull(),
  offerId: text('offer_id').notNull(),
  region: text('region'),
  createdAt: bigint('created_at', { mode: 'number' }).notNull(),
  wasSoldOut: boolean('was_sold_out').notNull(),
});

export const sshKeys = pgTable('ssh_keys', {
  id: text('id').primaryKey(),
  userId: text('user_id').notNull(),
  teamId: text('team_id').notNull(),
  name: verbatim('name').notNull(),
  publicKey: text('public_key').notNull(),
  fingerprint: text('fingerprint').notNull(),
  isTemporary: boolean('is_temporary').notNull(),
  createdAt: bigint('created_at', { mode: 'number' }).notNull(),
});

export const deployments = pgTable('deployments', {
  id: text('id').primaryKey(),
  name: verbatim('name').notNull(),
  userId: text('user_id').notNull(),
  teamId: text('team_id').notNull(),
  providerId: text('provider_id').notNull(),
  offerId: text('offer_id').notNull(),
  gpuType: text('gpu_type').notNull(),
  gpuModel: text('gpu_model').notNull(),
  gpuCount: integer('gpu_count').notNull(),
  region: text('region').notNull(),
  operatingSystem: text('operating_system').notNull(),
  instanceType: text('instance_type').$type<DeploymentRecord['instanceType']>().notNull(),
  vcpus: doublePrecision('vcpus').notNull(),
  memoryGb: doublePrecision('memory_gb').notNull(),
  storageGb: doublePrecision('storage_gb').notNull(),
  sshKeyId: text('ssh_key_id').notNull(),
  tempSshKeyId: text('temp_ssh_key_id'),
  sshKeyName: verbatim('ssh_key_name').notNull(),
  sshKeyFingerprint: text('ssh_key_fingerprint').notNull(),
  extras: json('extras').$type<Record<string, unknown>>().notNull(),
  providerMinimumRuntimeMinutes: doublePrecision('provider_minimum_runtime_minutes'),
  status: text('status').$type<DeploymentRecord['status']>().notNull(),
  ipAddress: text('ip_address'),
  loginUser: text('login_user'),
  sshPort: integer('ssh_port'),
  portForwards: json('port_forwards').$type<PortForward[]>().notNull(),
  failureReason: text('failure_reason').$type<NonNullable<DeploymentRecord['failureReason']>>(),
  failureDetails: verbatim('failure_details'),
  originalRateMicroUsd: bigint('original_rate_micro_usd', { mode: 'number' }).notNull(),
  rateMicroUsd: bigint('rate_micro_usd', { mode: 'number' }).notNull(),
  discountPercentage: doublePrecision('discount_percentage').notNull(),
  originalStoppedRateMicroUsd: bigint('original_stopped_rate_micro_usd', { mode: 'number' }),
  stoppedRateMicroUsd: bigint('stopped_rate_micro_usd', { mode: 'number' }),
  totalCostMicroUsd: bigint('total_cost_micro_usd', { mode: 'number' }).notNull(),
  lastCreditDeductionAt: bigint('last_credit_deduction_at', { mode: 'number' }),
  createdAt: bigint('created_at', { mode: 'number' }).notNull(),
  startedAt: bigint('started_at', { mode: 'number' }),
  stoppedAt: bigint('stopped_at', { mode: 'number' }),
  pausedAt: bigint('paused_at', { mode: 'number' }),
  pausedMs: bigint('paused_ms', { mode: 'number' }).notNull(),
  providerName: text('provider_name').notNull(),
  providerInstanceId: text('provider_instance_id'),
  launch: json('launch').$type<Launch>().notNull(),
  action: json('action').$type<Action>(),
  suspicion: json('suspicion').$type<Suspicion>(),
  observedAt: bigint('observed_at', { mode: 'number' }),
  cleanup: text('cleanup').$type<Cleanup>().notNull(),
  revision: integer('revision').notNull(),
  sshProof: json('ssh_proof').$type<SshProof>(),
  providerRateMicroUsd: bigint('provider_rate_micro_usd', { mode: 'number' }),
});

export const volumes = pgTable('volumes', {
  id: text('id').primaryKey(),
  volumeId: text('volume_id').notNull(),
  name: verbatim('name').notNull(),
  userId: text('user_id').notNull(),
  teamId: text('team_id').notNull(),
  providerId: text('provider_id').notNull(),
  region: text('region').notNull(),
  cloudId: text('cloud_id'),
  type: text('type'),
  sizeGb: doublePrecision('size_gb').notNull(),
  status: text('status').$type<VolumeRecord['status']>().notNull(),
  originalRateMicroUsd: bigint('original_rate_micro_usd', { mode: 'number' }).notNull(),
  rateMicroUsd: bigint('rate_micro_usd', { mode: 'number' }).notNull(),
  discountPercentage: doublePrecision('discount_percentage').notNull(),
  discountEndsAt: bigint('discount_ends_at', { mode: 'number' }),
  lastPriceUpdateAt: bigint('last_price_update_at', { mode: 'number' }).notNull(),
  totalCostMicroUsd: bigint('total_cost_micro_usd', { mode: 'number' }).notNull(),
  createdAt: bigint('created_at', { mode: 'number' }).notNull(),
  startedAt: bigint('started_at', { mode: 'number' }),
  deletedAt: bigint('deleted_at', { mode: 'number' }),
  lastAttachedAt: bigint('last_attached_at', { mode: 'number' }),
  lastDetachedAt: bigint('last_detached_at', { mode: 'number' }),
  providerName: text('provider_name').notNull(),
  providerVolumeId: text('provider_volume_id'),
  createSentAt: bigint('create_sent_at', { mode: 'number' }),
  action: json('action').$type<NonNullable<VolumeRecord['action']>>(),
  observedAt: bigint('observed_at', { mode: 'number' }),
  cleanup: text('cleanup').$type<Cleanup>().notNull(),
  revision: integer('revision').notNull(),
  deletionTakenAt: bigint('deletion_taken_at', { mode: 'number' }),
  requestId: text('request_id'),
});

export const attachments = pgTable(
  'attachments',
  {
    volumeId: text('volume_id').notNull(),
    deploymentId: text('deployment_id').notNull(),
    state: text('state').$type<AttachmentRecord['state']>().notNull(),
  },
  (table) => [primaryKey({ columns: [table.volumeId, table.deploymentId] })],
);

export const segments = pgTable('segments', {
  id: text('id').primaryKey(),
  subjectKind: text('subject_kind').$type<SubjectKind>().notNull(),
  subjectId: text('subject_id').notNull(),
  teamId: text('team_id').notNull(),
  state: text('state').$type<SegmentRecord['state']>().notNull(),
  rateMicroUsdPerHour: bigint('rate_micro_usd_per_hour', { mode: 'number' }).notNull(),
  originalRateMicroUsdPerHour: bigint('original_rate_micro_usd_per_hour', { mode: 'number' }).notNull(),
  discountPercentage: doublePrecision('discount_percentage').notNull(),
  startedAt: bigint('started_at', { mode: 'number' }).notNull(),
  endedAt: bigint('ended_at', { mode: 'number' }),
  postedUntil: bigint('posted_until', { mode: 'number' }).notNull(),
  postedMicroUsd: bigint('posted_micro_usd', { mode: 'number' }).notNull(),
  providerRateMicroUsdPerHour: bigint('provider_rate_micro_usd_per_hour', { mode: 'number' }),
});

export const ledgerTransactions = pgTable('ledger_transactions', {
  id: text('id').primaryKey(),
  kind: text('kind').$type<LedgerTransactionKind>().notNull(),
  teamId: text('team_id').notNull(),
  at: bigint('at', { mode: 'number' }).notNull(),
  memo: verbatim('memo').notNull(),
  reference: text('reference'),
});

export const ledgerEntries = pgTable(
  'ledger_entries',
  {
    transactionId: text('transaction_id').notNull(),
    account: text('account').$type<LedgerAccount>().notNull(),
    amountMicroUsd: bigint('amount_micro_usd', { mode: 'number' }).notNull(),
  },
  (table) => [primaryKey({ columns: [table.transactionId, table.account] })],
);

export const slices = pgTable(
  'slices',
  {
    segmentId: text('segment_id').notNull(),
    sliceEnd: bigint('slice_end', { mode: 'number' }).notNull(),
    amountMicroUsd: bigint('amount_micro_usd', { mode: 'number' }).notNull(),
    transactionId: text('transaction_id').notNull(),
  },
  (table) => [primaryKey({ columns: [table.segmentId, table.sliceEnd] })],
);

export const mails = pgTable('mails', {
  id: text('id').primaryKey(),
  class: text('class').$type<MailClass>().notNull(),
  kind: text('kind').notNull(),
  dedupeKey: text('dedupe_key').notNull(),
  to: text('to').notNull(),
  subject: verbatim('subject').notNull(),
  text: verbatim('text').notNull(),
  createdAt: bigint('created_at', { mode: 'number' }).notNull(),
  dueAt: bigint('due_at', { mode: 'number' }).notNull(),
  attempts: integer('attempts').notNull(),
  lastError: verbatim('last_error'),
  sentAt: bigint('sent_at', { mode: 'number' }),
  failedAt: bigint('failed_at', { mode: 'number' }),
});

export const leases = pgTable('leases', {
  name: text('name').primaryKey(),
  token: bigint('token', { mode: 'number' }).notNull(),
  holder: text('holder').notNull(),
  until: bigint('until', { mode: 'number' }).notNull(),
});

export const settings = pgTable('settings', {
  name: text('name').primaryKey(),
  value: text('value').notNull(),
});

export const losses = pgTable('losses', {
  subjectId: text('subject_id').primaryKey(),
  kind: text('kind').$type<LossRecord['kind']>().notNull(),
  providerId: text('provider_id').notNull(),
  at: bigint('at', { mode: 'number' }).notNull(),
  isHeld: boolean('is_held').notNull(),
});

/** Written with each request; of no worth after a crash. */
export const requestCounts = pgTable('request_counts', {
  name: text('name').primaryKey(),
  count: bigint('count', { mode: 'number' }).notNull(),
  endsAt: bigint('ends_at', { mode: 'number' }).notNull(),
});
