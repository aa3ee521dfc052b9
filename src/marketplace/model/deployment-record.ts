import type { CreateInstanceRequest, InstanceStatus, PortForward } from '../../contract/instance.ts';
import type { ProbeStep } from '../../ports/ssh-probe.ts';
import { activeStatuses, type DeploymentStatus, type FailureReason } from '../contract/deployment.ts';
import type { InstanceType } from '../contract/values.ts';
import type { Intent, Refusal } from './intent.ts';

export interface Launch {
  /**
   * `sent`: a create was sent and may have made an instance; it is never sent again. `over`: no instance will be made.
   */
  state: 'wanted' | 'sent' | 'made' | 'over';
  /** The body of the create. Null once it is no longer needed, since it contains the user's data. */
  request: CreateInstanceRequest | null;
  /** When the create was last sent. */
  sentAt: number | null;
  /** The id of the request that made the deployment, as in the log. */
  requestId?: string;
}

/** A pending change. Those of its volumes are in the attachments. */
export interface DeploymentIntent extends Intent<'pause' | 'resume' | 'restart'> {
  /** When the provider last reported on the restart without ending the intent. */
  checkedAt?: number;
}

/** A status that the provider shows but that must be confirmed before it is applied. */
export interface Suspicion {
  /** `GONE`: the provider answered 404. */
  status: InstanceStatus | 'GONE';
  /** The time of the first observation. Once confirmed, the status counts from here. */
  since: number;
  /** How many consecutive polls showed it. */
  polls: number;
}

/** The proof that a machine is "reachable by SSH" (M: running). It is made once, before the deployment runs. */
export interface SshProof {
  /** The public keys that the machine was made with. */
  keys: string[];
  /** When the provider first showed the machine ONLINE. The time limit for the proof starts here. */
  onlineAt: number | null;
  /** Attempts that failed, plus those that proved an endpoint that has changed since. */
  attempts: number;
  /** The step at which the last attempt failed. */
  failedAt: ProbeStep | null;
  /** The endpoint that accepted the keys, as `user@host:port`. */
  provedEndpoint: string | null;
  provedAt: number | null;
}

/** `none`: the ended deployment has no instance at the provider, or keeps it; see `isLost`. */
export type Cleanup = 'none' | 'wanted' | 'done';

export interface DeploymentRecord {
  id: string;
  name: string;
  userId: string;
  teamId: string;
  providerId: string;
  offerId: string;
  gpuType: string;
  gpuModel: string;
  gpuCount: number;
  region: string;
  operatingSystem: string;
  instanceType: InstanceType;
  vcpus: number;
  memoryGb: number;
  storageGb: number;
  sshKeyId: string;
  tempSshKeyId: string | null;
  sshKeyName: string;
  sshKeyFingerprint: string;
  /** The offer's extras at the time of the create. */
  extras: Record<string, unknown>;
  /** The machine type's minimum reservation. */
  providerMinimumRuntimeMinutes: number | null;

  status: DeploymentStatus;
  ipAddress: string | null;
  loginUser: string | null;
  sshPort: number | null;
  portForwards: PortForward[];
  failureReason: FailureReason | null;
  failureDetails: string | null;

  /** The provider's price of the running instance. */
  providerRateMicroUsd: number;
  /** The provider's price at the time of the order. */
  orderedProviderRateMicroUsd: number;
  /** The price of the running instance with the markup, and that price after the team's discount. */
  originalRateMicroUsd: number;
  rateMicroUsd: number;
  discountPercentage: number;
  /** Null until the first stop. */
  originalStoppedRateMicroUsd: number | null;
  stoppedRateMicroUsd: number | null;
  /** The total that the ledger has charged. Only the ledger writes it. */
  totalCostMicroUsd: number;
  /** The end of the newest slice. Only the ledger writes it. */
  lastCreditDeductionAt: number | null;

  createdAt: number;
  /** When the deployment was first observed `running`. */
  startedAt: number | null;
  stoppedAt: number | null;
  /** When the current stop began; null while it is not stopped. */
  pausedAt: number | null;
  pausedMs: number;

  providerName: string;
  providerInstanceId: string | null;
  launch: Launch;
  action: DeploymentIntent | null;
  /** The next change keeps it, since a request may not have read it yet. */
  refusal: Refusal | null;
  suspicion: Suspicion | null;
  /** When the provider last confirmed the record. The deployment is billed at least until then. */
  observedAt: number | null;
  cleanup: Cleanup;
  /** Increases with every write. An observation made at an older revision is not applied. */
  revision: number;
  /** Null until the instance is known. */
  sshProof: SshProof | null;
}

/** The columns of a deployment that has only been accepted so far. */
export const untouchedDeployment = {
  status: 'deploying',
  ipAddress: null,
  loginUser: null,
  sshPort: null,
  portForwards: [],
  failureReason: null,
  failureDetails: null,
  originalStoppedRateMicroUsd: null,
  stoppedRateMicroUsd: null,
  totalCostMicroUsd: 0,
  lastCreditDeductionAt: null,
  startedAt: null,
  stoppedAt: null,
  pausedAt: null,
  pausedMs: 0,
  providerInstanceId: null,
  action: null,
  refusal: null,
  suspicion: null,
  observedAt: null,
  cleanup: 'none',
  revision: 1,
  sshProof: null,
} satisfies Partial<DeploymentRecord>;

type Named = Pick<DeploymentRecord, 'id' | 'teamId' | 'providerId' | 'launch'>;

/** The fields that all log lines about a deployment share, from its create on. */
export function logNames({ id, teamId, providerId, launch }: Named) {
  const { requestId } = launch;
  return {
    deployment: id,
    team: teamId,
    provider: providerId,
    ...(requestId !== undefined && { request_id: requestId }),
  };
}

/** Whether the deployment can still run and cost something. */
export function isActive({ status }: Pick<DeploymentRecord, 'status'>): boolean {
  return activeStatuses.includes(status);
}

export type LostDeployment = DeploymentRecord & { providerInstanceId: string };

/**
 * Whether a 404 ended the deployment. If its instance appears again, only an operator may delete it: a 404 does not
 * authorise a deletion.
 */
export function isLost(record: DeploymentRecord): record is LostDeployment {
  return !isActive(record) && record.providerInstanceId !== null && record.cleanup === 'none';
}
