import { blob, customType, integer, primaryKey, real, sqliteTable, text } from 'drizzle-orm/sqlite-core';
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

// The tables as migrations/ leaves them; a test compares the two.

/** Any text that somebody else chose; SQLite's own has no lone surrogate. */
const verbatim = customType<{ data: string; driverData: string }>({
  dataType: () => 'text',
  toDriver: (text) => JSON.stringify(text),
  fromDriver: (text) => JSON.parse(text),
});

export const users = sqliteTable('users', {
  id: text('id').primaryKey(),
  email: text('email').notNull(),
  name: text('name').notNull(),
  currentTeamId: text('current_team_id'),
  mayMakeKeys: integer('may_make_keys', { mode: 'boolean' }).notNull(),
  createLimit: integer('create_limit'),
  minimumRuntimeMinutes: real('minimum_runtime_minutes'),
  wantsDeploymentMail: integer('wants_deployment_mail', { mode: 'boolean' }).notNull(),
  wantsMarketingMail: integer('wants_marketing_mail', { mode: 'boolean' }).notNull(),
  createdAt: integer('created_at').notNull(),
});

export const apiKeys = sqliteTable('api_keys', {
  id: text('id').primaryKey(),
  userId: text('user_id').notNull(),
  digest: blob('digest', { mode: 'buffer' }).notNull(),
  prefix: text('prefix').notNull(),
  lastFour: text('last_four').notNull(),
  label: text('label'),
  createdAt: integer('created_at').notNull(),
  expiresAt: integer('expires_at'),
  revokedAt: integer('revoked_at'),
  lastUsedAt: integer('last_used_at'),
});

export const teams = sqliteTable('teams', {
  id: text('id').primaryKey(),
  name: text('name').notNull(),
  slug: text('slug').notNull(),
  ownerId: text('owner_id').notNull(),
  balanceMicroUsd: integer('balance_micro_usd').notNull(),
  watch: text('watch', { mode: 'json' }).$type<BalanceWatch>().notNull(),
  createdAt: integer('created_at').notNull(),
});

export const members = sqliteTable(
  'members',
  {
    teamId: text('team_id').notNull(),
    userId: text('user_id').notNull(),
    role: text('role').$type<MemberRecord['role']>().notNull(),
    joinedAt: integer('joined_at').notNull(),
  },
  (table) => [primaryKey({ columns: [table.teamId, table.userId] })],
);

export const discounts = sqliteTable('discounts', {
  id: text('id').primaryKey(),
  teamId: text('team_id').notNull(),
  source: text('source').$type<DiscountRecord['source']>().notNull(),
  percentage: real('percentage').notNull(),
  startsAt: integer('starts_at').notNull(),
  endsAt: integer('ends_at'),
});

export const stockAlerts = sqliteTable('stock_alerts', {
  id: text('id').primaryKey(),
  userId: text('user_id').notNull(),
  providerId: text('provider_id').notNull(),
  offerId: text('offer_id').notNull(),
  region: text('region'),
  createdAt: integer('created_at').notNull(),
  wasSoldOut: integer('was_sold_out', { mode: 'boolean' }).notNull(),
});

export const sshKeys = sqliteTable('ssh_keys', {
  id: text('id').primaryKey(),
  userId: text('user_id').notNull(),
  teamId: text('team_id').notNull(),
  name: verbatim('name').notNull(),
  publicKey: text('public_key').notNull(),
  fingerprint: text('fingerprint').notNull(),
  isTemporary: integer('is_temporary', { mode: 'boolean' }).notNull(),
  createdAt: integer('created_at').notNull(),
});

export const deployments = sqliteTable('deployments', {
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
  vcpus: real('vcpus').notNull(),
  memoryGb: real('memory_gb').notNull(),
  storageGb: real('storage_gb').notNull(),
  sshKeyId: text('ssh_key_id').notNull(),
  tempSshKeyId: text('temp_ssh_key_id'),
  sshKeyName: verbatim('ssh_key_name').notNull(),
  sshKeyFingerprint: text('ssh_key_fingerprint').notNull(),
  extras: text('extras', { mode: 'json' }).$type<Record<string, unknown>>().notNull(),
  providerMinimumRuntimeMinutes: real('provider_minimum_runtime_minutes'),
  status: text('status').$type<DeploymentRecord['status']>().notNull(),
  ipAddress: text('ip_address'),
  loginUser: text('login_user'),
  sshPort: integer('ssh_port'),
  portForwards: text('port_forwards', { mode: 'json' }).$type<PortForward[]>().notNull(),
  failureReason: text('failure_reason').$type<NonNullable<DeploymentRecord['failureReason']>>(),
  failureDetails: verbatim('failure_details'),
  originalRateMicroUsd: integer('original_rate_micro_usd').notNull(),
  rateMicroUsd: integer('rate_micro_usd').notNull(),
  discountPercentage: real('discount_percentage').notNull(),
  originalStoppedRateMicroUsd: integer('original_stopped_rate_micro_usd'),
  stoppedRateMicroUsd: integer('stopped_rate_micro_usd'),
  totalCostMicroUsd: integer('total_cost_micro_usd').notNull(),
  lastCreditDeductionAt: integer('last_credit_deduction_at'),
  createdAt: integer('created_at').notNull(),
  startedAt: integer('started_at'),
  stoppedAt: integer('stopped_at'),
  pausedAt: integer('paused_at'),
  pausedMs: integer('paused_ms').notNull(),
  providerName: text('provider_name').notNull(),
  providerInstanceId: text('provider_instance_id'),
  launch: text('launch', { mode: 'json' }).$type<Launch>().notNull(),
  action: text('action', { mode: 'json' }).$type<Action>(),
  suspicion: text('suspicion', { mode: 'json' }).$type<Suspicion>(),
  observedAt: integer('observed_at'),
  cleanup: text('cleanup').$type<Cleanup>().notNull(),
  revision: integer('revision').notNull(),
  sshProof: text('ssh_proof', { mode: 'json' }).$type<SshProof>(),
  providerRateMicroUsd: integer('provider_rate_micro_usd'),
});

export const volumes = sqliteTable('volumes', {
  id: text('id').primaryKey(),
  volumeId: text('volume_id').notNull(),
  name: verbatim('name').notNull(),
  userId: text('user_id').notNull(),
  teamId: text('team_id').notNull(),
  providerId: text('provider_id').notNull(),
  region: text('region').notNull(),
  cloudId: text('cloud_id'),
  type: text('type'),
  sizeGb: real('size_gb').notNull(),
  status: text('status').$type<VolumeRecord['status']>().notNull(),
  originalRateMicroUsd: integer('original_rate_micro_usd').notNull(),
  rateMicroUsd: integer('rate_micro_usd').notNull(),
  discountPercentage: real('discount_percentage').notNull(),
  discountEndsAt: integer('discount_ends_at'),
  lastPriceUpdateAt: integer('last_price_update_at').notNull(),
  totalCostMicroUsd: integer('total_cost_micro_usd').notNull(),
  createdAt: integer('created_at').notNull(),
  startedAt: integer('started_at'),
  deletedAt: integer('deleted_at'),
  lastAttachedAt: integer('last_attached_at'),
  lastDetachedAt: integer('last_detached_at'),
  providerName: text('provider_name').notNull(),
  providerVolumeId: text('provider_volume_id'),
  createSentAt: integer('create_sent_at'),
  action: text('action', { mode: 'json' }).$type<NonNullable<VolumeRecord['action']>>(),
  observedAt: integer('observed_at'),
  cleanup: text('cleanup').$type<Cleanup>().notNull(),
  revision: integer('revision').notNull(),
  deletionTakenAt: integer('deletion_taken_at'),
  requestId: text('request_id'),
});

export const attachments = sqliteTable(
  'attachments',
  {
    volumeId: text('volume_id').notNull(),
    deploymentId: text('deployment_id').notNull(),
    state: text('state').$type<AttachmentRecord['state']>().notNull(),
  },
  (table) => [primaryKey({ columns: [table.volumeId, table.deploymentId] })],
);

export const segments = sqliteTable('segments', {
  id: text('id').primaryKey(),
  subjectKind: text('subject_kind').$type<SubjectKind>().notNull(),
  subjectId: text('subject_id').notNull(),
  teamId: text('team_id').notNull(),
  state: text('state').$type<SegmentRecord['state']>().notNull(),
  rateMicroUsdPerHour: integer('rate_micro_usd_per_hour').notNull(),
  originalRateMicroUsdPerHour: integer('original_rate_micro_usd_per_hour').notNull(),
  discountPercentage: real('discount_percentage').notNull(),
  startedAt: integer('started_at').notNull(),
  endedAt: integer('ended_at'),
  postedUntil: integer('posted_until').notNull(),
  postedMicroUsd: integer('posted_micro_usd').notNull(),
  providerRateMicroUsdPerHour: integer('provider_rate_micro_usd_per_hour'),
});

export const ledgerTransactions = sqliteTable('ledger_transactions', {
  id: text('id').primaryKey(),
  kind: text('kind').$type<LedgerTransactionKind>().notNull(),
  teamId: text('team_id').notNull(),
  at: integer('at').notNull(),
  memo: verbatim('memo').notNull(),
  reference: text('reference'),
});

export const ledgerEntries = sqliteTable(
  'ledger_entries',
  {
    transactionId: text('transaction_id').notNull(),
    account: text('account').$type<LedgerAccount>().notNull(),
    amountMicroUsd: integer('amount_micro_usd').notNull(),
  },
  (table) => [primaryKey({ columns: [table.transactionId, table.account] })],
);

export const slices = sqliteTable(
  'slices',
  {
    segmentId: text('segment_id').notNull(),
    sliceEnd: integer('slice_end').notNull(),
    amountMicroUsd: integer('amount_micro_usd').notNull(),
    transactionId: text('transaction_id').notNull(),
  },
  (table) => [primaryKey({ columns: [table.segmentId, table.sliceEnd] })],
);

export const mails = sqliteTable('mails', {
  id: text('id').primaryKey(),
  class: text('class').$type<MailClass>().notNull(),
  kind: text('kind').notNull(),
  dedupeKey: text('dedupe_key').notNull(),
  to: text('to').notNull(),
  subject: verbatim('subject').notNull(),
  text: verbatim('text').notNull(),
  createdAt: integer('created_at').notNull(),
  dueAt: integer('due_at').notNull(),
  attempts: integer('attempts').notNull(),
  lastError: verbatim('last_error'),
  sentAt: integer('sent_at'),
  failedAt: integer('failed_at'),
});

export const leases = sqliteTable('leases', {
  name: text('name').primaryKey(),
  token: integer('token').notNull(),
  holder: text('holder').notNull(),
  until: integer('until').notNull(),
});

export const settings = sqliteTable('settings', {
  name: text('name').primaryKey(),
  value: text('value').notNull(),
});

export const losses = sqliteTable('losses', {
  subjectId: text('subject_id').primaryKey(),
  kind: text('kind').$type<LossRecord['kind']>().notNull(),
  providerId: text('provider_id').notNull(),
  at: integer('at').notNull(),
  isHeld: integer('is_held', { mode: 'boolean' }).notNull(),
});
