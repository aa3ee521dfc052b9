import { z } from 'zod';
import { cloudInitSchema } from '../../contract/cloud-init.ts';
import { portForwardSchema } from '../../contract/instance.ts';
import { sshKeyTextSchema } from '../../contract/ssh-key.ts';
import type { TransitionTable } from '../../contract/transitions.ts';
import {
  idSchema,
  requestedInstanceTypeSchema,
  timestampSchema,
  usdPerHourSchema,
  usdSchema,
} from './values.ts';

export const deploymentStatuses = [
  'deploying',
  'running',
  'stopped',
  'failed',
  'terminated',
  'terminated-provider',
] as const;
const deploymentStatusSchema = z.enum(deploymentStatuses).meta({ id: 'DeploymentStatus' });
export type DeploymentStatus = (typeof deploymentStatuses)[number];

/** M: States and transitions. A restart is not a transition. */
export const deploymentTransitions: TransitionTable<DeploymentStatus> = {
  // The create was accepted and the provider is making the instance. This state costs nothing.
  deploying: ['running', 'failed'],
  // The instance is reachable by SSH and billed at hourlyRate.
  running: ['stopped', 'terminated', 'terminated-provider', 'failed'],
  // The disk is kept and billed at stoppedHourlyRate. A failed start leaves the deployment in this state.
  stopped: ['running', 'terminated', 'terminated-provider', 'failed'],
  // The three states below are final.
  failed: [],
  terminated: [],
  'terminated-provider': [],
};

/** Statuses of the live set (M: States, rule 3): `?status=active`. */
export const activeStatuses: readonly DeploymentStatus[] = ['deploying', 'running', 'stopped'];
/** Statuses of `?status=inactive`. M: names terminated and failed; `terminated-provider` is a termination too. */
export const inactiveStatuses: readonly DeploymentStatus[] = ['terminated', 'failed', 'terminated-provider'];

/** The closed set of reasons why a deployment failed. Berth defines it, since M: says "Allowed values … not shown". */
export const failureReasons = {
  out_of_stock: 'The provider has no free machine of this configuration.',
  quota_exceeded: 'The quota of this marketplace at the provider is used up.',
  conflict: 'The provider refused because of a conflict with an existing resource.',
  invalid_request: 'The provider refused the request as invalid.',
  unsupported: 'The provider does not support the request.',
  provider_unauthorized: "The provider did not accept the marketplace's credential.",
  provider_error: 'The provider failed, and no machine was found there.',
  provisioning_failed: 'The provider reported that the machine failed while it was being created.',
  provisioning_timeout: 'The machine was not reachable within the deploy timeout of its provider.',
  ssh_unreachable: 'The machine was created, but SSH login with its key failed.',
  provider_lost: 'The machine disappeared at the provider before it was running.',
  runtime_failure: 'The machine was running, and its provider reported a failure.',
} as const;
export type FailureReason = keyof typeof failureReasons;
const failureReasonSchema = z
  .enum(Object.keys(failureReasons) as [FailureReason, ...FailureReason[]])
  .meta({ id: 'FailureReason' });

/** M: Deployment. */
export const deploymentSchema = z
  .object({
    id: z.string(),
    name: z.string(),
    userId: z.string(),
    teamId: z.string(),
    gpuModelId: z.string().meta({ description: 'Legacy composite; prefer gpuType and offerId.' }),
    gpuType: z.string(),
    offerId: z.string(),
    providerId: z.string(),
    gpuCount: z.int(),
    region: z.string(),
    operatingSystem: z.string(),
    instanceType: z.enum(['SPOT', 'DEDICATED', 'BARE_METAL', 'CLUSTER']),
    sshKeyId: z.string(),
    tempSshKeyId: z.string().nullable(),
    sshKeyName: z.string(),
    sshKeyFingerprint: z.string(),
    ipAddress: z.string().nullable(),
    user: z.string().nullable(),
    status: deploymentStatusSchema,
    startedAt: timestampSchema.nullable(),
    stoppedAt: timestampSchema.nullable(),
    lastCreditDeduction: timestampSchema.nullable(),
    createdAt: timestampSchema,
    totalCost: usdSchema,
    hourlyRate: usdPerHourSchema,
    originalHourlyRate: usdPerHourSchema,
    discountPercentage: z.number(),
    hasDiscount: z.boolean(),
    stoppedHourlyRate: usdPerHourSchema.nullable(),
    pausedAt: timestampSchema.nullable(),
    totalPausedHours: z.number(),
    supportsPause: z.boolean(),
    supportsRestart: z.boolean(),
    pauseUnsupportedReason: z.string().nullable(),
    providerMinimumRuntimeMinutes: z.number().nullable(),
    vcpus: z.number(),
    memory: z.number(),
    storage: z.number(),
    sshCommand: z.string().nullable(),
    sshPort: z.int().nullable(),
    portForwards: z.array(portForwardSchema),
    extras: z.record(z.string(), z.unknown()).optional(),
    failureReason: failureReasonSchema.optional(),
    failureDetails: z.string().optional(),
  })
  .meta({ id: 'Deployment' });
export type Deployment = z.infer<typeof deploymentSchema>;

/** M: `cloudInit`. The field names differ from the provider's; the rules for their contents are the same. */
const { runcmd, packages, write_files: writeFiles } = cloudInitSchema.shape;
export const requestedCloudInitSchema = z.object({ runcmd, packages, writeFiles }).meta({ id: 'CloudInit' });
export type RequestedCloudInit = z.infer<typeof requestedCloudInitSchema>;

/** M: Create body. `gpuType` and `instanceType` default to the offer's. Unknown fields are ignored. */
export const createDeploymentSchema = z
  .object({
    provider: idSchema,
    offerId: idSchema,
    gpuType: z.string().min(1).max(255).optional(),
    gpuCount: z.int().nonnegative(),
    region: idSchema,
    operatingSystem: idSchema,
    instanceType: requestedInstanceTypeSchema.optional(),
    sshKeyId: idSchema.optional(),
    ssh_public_key: sshKeyTextSchema.optional(),
    teamId: idSchema.optional(),
    name: z
      .string()
      .optional()
      .meta({ description: 'A display label, stored verbatim, with no character or length restriction.' }),
    cloudInit: requestedCloudInitSchema.optional(),
    volumeIds: z.array(idSchema).max(64).optional(),
  })
  .meta({ id: 'CreateDeployment' });
export type CreateDeployment = z.infer<typeof createDeploymentSchema>;

/** M: PATCH. The use case rejects "a body without `name`" ("404, text `Nothing to update`"). */
export const renameDeploymentSchema = z
  .object({ name: z.string().optional() })
  .meta({ id: 'RenameDeployment' });
export type RenameDeployment = z.infer<typeof renameDeploymentSchema>;

/** M: Termination check. */
export const terminationCheckSchema = z
  .object({
    canTerminate: z.boolean(),
    runtime: z.number().meta({ description: 'Minutes since the start; time stopped does not count.' }),
    timeRemaining: z.number().meta({ description: 'Minutes.' }),
    minimumRuntime: z.number().meta({ description: 'Minutes.' }),
    reason: z.string().optional().meta({ description: 'Present when canTerminate is false.' }),
  })
  .meta({ id: 'TerminationCheck' });
export type TerminationCheck = z.infer<typeof terminationCheckSchema>;

/** M: Stop quote. The amounts of `breakdown` add up to `hourlyRate`. */
export const stopQuoteSchema = z
  .object({
    hourlyRate: usdPerHourSchema.meta({ description: 'The stopped rate after discount.' }),
    originalHourlyRate: usdPerHourSchema.meta({ description: 'The stopped rate before discount.' }),
    currentHourlyRate: usdPerHourSchema.meta({ description: 'The running rate.' }),
    breakdown: z.array(z.object({ label: z.string(), amount: usdPerHourSchema })),
  })
  .meta({ id: 'StopQuote' });
export type StopQuote = z.infer<typeof stopQuoteSchema>;

/** M: reboot-status: "`since` absent and `restarting` false when no reboot is in flight". */
export const rebootStatusSchema = z
  .object({ restarting: z.boolean(), since: timestampSchema.optional() })
  .meta({ id: 'RebootStatus' });
export type RebootStatus = z.infer<typeof rebootStatusSchema>;

/** M: the 200 response of a terminate. */
export const terminatedSchema = z
  .object({
    message: z.string(),
    deployment: z.object({
      id: z.string(),
      status: deploymentStatusSchema,
      stoppedAt: timestampSchema.nullable(),
    }),
  })
  .meta({ id: 'Terminated' });
export type Terminated = z.infer<typeof terminatedSchema>;

/** Values of `?status=`. M: omits `terminated-provider`, although a deployment can have that status. */
export const deploymentFilters = [
  'active',
  'inactive',
  'running',
  'deploying',
  'stopped',
  'terminated',
  'failed',
  'terminated-provider',
] as const;
export type DeploymentFilter = (typeof deploymentFilters)[number];
