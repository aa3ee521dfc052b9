import { sql } from 'drizzle-orm';
import type { PortForward } from '../../contract/instance.ts';
import type {
  Cleanup,
  DeploymentIntent,
  DeploymentRecord,
  Launch,
  SshProof,
  Suspicion,
} from '../../marketplace/model/deployment-record.ts';
import type { Refusal } from '../../marketplace/model/intent.ts';
import type { LossRecord } from '../../marketplace/model/ledger-records.ts';
import type { AttachmentRecord, VolumeRecord, VolumeUsage } from '../../marketplace/model/volume-record.ts';
import type { PeopleTables } from './marketplace-people.ts';
import type { Dialect } from './postgres.ts';

/** Deployments and volumes at the providers. */
export function resourceTables(
  { table, text, idOf, verbatim, boolean, integer, bigint, double, json, primaryKey, index }: Dialect,
  { teams, users }: PeopleTables,
) {
  const deployments = table(
    'deployments',
    {
      id: text('id').primaryKey(),
      name: verbatim('name').notNull(),
      userId: idOf('user_id', () => users.id),
      teamId: idOf('team_id', () => teams.id),
      providerId: text('provider_id').notNull(),
      offerId: text('offer_id').notNull(),
      gpuType: text('gpu_type').notNull(),
      gpuModel: text('gpu_model').notNull(),
      gpuCount: integer('gpu_count').notNull(),
      region: text('region').notNull(),
      operatingSystem: text('operating_system').notNull(),
      instanceType: text('instance_type').$type<DeploymentRecord['instanceType']>().notNull(),
      vcpus: double('vcpus').notNull(),
      memoryGb: double('memory_gb').notNull(),
      storageGb: double('storage_gb').notNull(),
      sshKeyId: text('ssh_key_id').notNull(),
      tempSshKeyId: text('temp_ssh_key_id'),
      sshKeyName: verbatim('ssh_key_name').notNull(),
      sshKeyFingerprint: text('ssh_key_fingerprint').notNull(),
      extras: json('extras').$type<Record<string, unknown>>().notNull(),
      providerMinimumRuntimeMinutes: double('provider_minimum_runtime_minutes'),
      status: text('status').$type<DeploymentRecord['status']>().notNull(),
      ipAddress: text('ip_address'),
      loginUser: text('login_user'),
      sshPort: integer('ssh_port'),
      portForwards: json('port_forwards').$type<PortForward[]>().notNull(),
      failureReason: text('failure_reason').$type<NonNullable<DeploymentRecord['failureReason']>>(),
      failureDetails: verbatim('failure_details'),
      originalRateMicroUsd: bigint('original_rate_micro_usd').notNull(),
      rateMicroUsd: bigint('rate_micro_usd').notNull(),
      discountPercentage: double('discount_percentage').notNull(),
      originalStoppedRateMicroUsd: bigint('original_stopped_rate_micro_usd'),
      stoppedRateMicroUsd: bigint('stopped_rate_micro_usd'),
      totalCostMicroUsd: bigint('total_cost_micro_usd').notNull(),
      lastCreditDeductionAt: bigint('last_credit_deduction_at'),
      createdAt: bigint('created_at').notNull(),
      startedAt: bigint('started_at'),
      stoppedAt: bigint('stopped_at'),
      pausedAt: bigint('paused_at'),
      pausedMs: bigint('paused_ms').notNull(),
      providerName: text('provider_name').notNull().unique('deployments_provider_name_key'),
      providerInstanceId: text('provider_instance_id'),
      launch: json('launch').$type<Launch>().notNull(),
      action: json('action').$type<DeploymentIntent>(),
      suspicion: json('suspicion').$type<Suspicion>(),
      observedAt: bigint('observed_at'),
      cleanup: text('cleanup').$type<Cleanup>().notNull(),
      revision: integer('revision').notNull(),
      sshProof: json('ssh_proof').$type<SshProof>(),
      providerRateMicroUsd: bigint('provider_rate_micro_usd').notNull(),
      refusal: json('refusal').$type<Refusal>(),
      orderedProviderRateMicroUsd: bigint('ordered_provider_rate_micro_usd').notNull(),
    },
    (t) => [
      index('deployments_to_tend')
        .on(t.providerId)
        .where(sql`${t.status} IN ('deploying', 'running', 'stopped') OR ${t.cleanup} = 'wanted'`),
      index('deployments_new_to_tend')
        .on(t.providerId)
        .where(sql`${t.status} = 'deploying' OR ${t.cleanup} = 'wanted' OR ${t.action} IS NOT NULL`),
      index('deployments_by_instance')
        .on(t.providerInstanceId)
        .where(sql`${t.providerInstanceId} IS NOT NULL`),
      index('deployments_active_by_team')
        .on(t.teamId, t.status, t.originalRateMicroUsd, t.originalStoppedRateMicroUsd)
        .where(sql`${t.status} IN ('deploying', 'running', 'stopped')`),
      index('deployments_resuming')
        .on(t.teamId)
        .where(sql`${t.status} = 'stopped' AND ${t.action} IS NOT NULL`),
      index('deployments_by_team').on(t.teamId, t.createdAt),
      index('deployments_by_user').on(t.userId, t.createdAt),
      index('deployments_by_time').on(t.createdAt, t.gpuType),
      index('deployments_active_by_status')
        .on(t.status)
        .where(sql`${t.status} IN ('deploying', 'running', 'stopped')`),
    ],
  );

  const volumes = table(
    'volumes',
    {
      id: text('id').primaryKey(),
      volumeId: text('volume_id').notNull().unique('volumes_volume_id_key'),
      name: verbatim('name').notNull(),
      userId: idOf('user_id', () => users.id),
      teamId: idOf('team_id', () => teams.id),
      providerId: text('provider_id').notNull(),
      region: text('region').notNull(),
      cloudId: text('cloud_id'),
      type: text('type'),
      sizeGb: double('size_gb').notNull(),
      status: text('status').$type<VolumeRecord['status']>().notNull(),
      originalRateMicroUsd: bigint('original_rate_micro_usd').notNull(),
      rateMicroUsd: bigint('rate_micro_usd').notNull(),
      discountPercentage: double('discount_percentage').notNull(),
      discountEndsAt: bigint('discount_ends_at'),
      lastPriceUpdateAt: bigint('last_price_update_at').notNull(),
      totalCostMicroUsd: bigint('total_cost_micro_usd').notNull(),
      createdAt: bigint('created_at').notNull(),
      startedAt: bigint('started_at'),
      deletedAt: bigint('deleted_at'),
      lastAttachedAt: bigint('last_attached_at'),
      lastDetachedAt: bigint('last_detached_at'),
      providerName: text('provider_name').notNull().unique('volumes_provider_name_key'),
      providerVolumeId: text('provider_volume_id'),
      action: json('action').$type<NonNullable<VolumeRecord['action']>>(),
      observedAt: bigint('observed_at'),
      cleanup: text('cleanup').$type<Cleanup>().notNull(),
      revision: integer('revision').notNull(),
      deletionTakenAt: bigint('deletion_taken_at'),
      requestId: text('request_id'),
      refusal: json('refusal').$type<Refusal>(),
      usage: json('usage').$type<VolumeUsage>(),
      resizeGivenUpGb: double('resize_given_up_gb'),
      providerSizeGb: double('provider_size_gb'),
    },
    (t) => [
      index('volumes_to_tend')
        .on(t.providerId)
        .where(sql`${t.action} IS NOT NULL OR ${t.cleanup} = 'wanted' OR ${t.status} = 'creating'`),
      index('volumes_by_provider_volume')
        .on(t.providerVolumeId)
        .where(sql`${t.providerVolumeId} IS NOT NULL`),
      index('volumes_by_team').on(t.teamId, t.createdAt),
      index('volumes_live_by_team').on(t.teamId).where(sql`${t.status} <> 'deleted'`),
      index('volumes_live_by_provider').on(t.providerId).where(sql`${t.status} <> 'deleted'`),
    ],
  );

  const attachments = table(
    'attachments',
    {
      volumeId: idOf('volume_id', () => volumes.id),
      deploymentId: idOf('deployment_id', () => deployments.id),
      state: text('state').$type<AttachmentRecord['state']>().notNull(),
      intent: json('intent').$type<NonNullable<AttachmentRecord['intent']>>(),
    },
    (t) => [
      primaryKey({ columns: [t.volumeId, t.deploymentId] }),
      index('attachments_by_deployment').on(t.deploymentId),
      index('attachments_in_transit').on(t.volumeId).where(sql`${t.state} <> 'attached'`),
    ],
  );

  const losses = table(
    'losses',
    {
      subjectId: text('subject_id').primaryKey(),
      kind: text('kind').$type<LossRecord['kind']>().notNull(),
      providerId: text('provider_id').notNull(),
      at: bigint('at').notNull(),
      isHeld: boolean('is_held').notNull(),
    },
    (t) => [
      index('losses_by_provider').on(t.providerId, t.at),
      index('losses_held').on(t.providerId, t.at).where(sql`${t.isHeld}`),
    ],
  );

  return { deployments, volumes, attachments, losses };
}
