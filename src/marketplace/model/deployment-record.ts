import type { CreateInstanceRequest, InstanceStatus, PortForward } from '../../contract/instance.ts';
import type { ProbeStep } from '../../ports/ssh-probe.ts';
import { activeStatuses, type DeploymentStatus, type FailureReason } from '../contract/deployment.ts';
import { ApiError } from '../contract/errors.ts';
import type { InstanceType } from '../contract/values.ts';
import type { Intent, Refusal } from './intent.ts';
import type { MarketplaceOptions } from './options.ts';

/** The progress of creating the instance at the provider. */
export interface Launch {
  /**
   * `wanted`: no create was sent. `sent`: one was sent, and may have made an instance; it is never sent again. `made`:
   * the provider's id is known. `over`: nothing is made any more.
   */
  state: 'wanted' | 'sent' | 'made' | 'over';
  /** What the provider is asked for; null once it is not needed any more, since it holds what the user sent. */
  request: CreateInstanceRequest | null;
  /** When the create was sent last. */
  sentAt: number | null;
  /** How often the provider's list was searched without success since an answer was lost. */
  looks: number;
  /** The request that made the deployment, as its line in the log names it. Absent: it is older than this field. */
  requestId?: string;
}

/** A change of a deployment. `volume`: one of a volume on it, which has its own attempts; nothing is sent for this one. */
export interface DeploymentIntent extends Intent<'pause' | 'resume' | 'restart' | 'volume'> {
  /** When the provider last said whether a restart goes on, if this did not end the intent. */
  checkedAt?: number;
}

/** A status that the provider shows and that has to be confirmed before it is applied. */
export interface Suspicion {
  /** `GONE`: 404. */
  status: InstanceStatus | 'GONE';
  /** The first observation: what it confirms holds from here on. */
  since: number;
  /** How many polls in a row have said so. */
  polls: number;
  /** Whether the provider's list has said so too. */
  isListed: boolean;
}

/** The proof that a machine is what M: calls running: "reachable by SSH". Given once, before it runs. */
export interface SshProof {
  /** The public keys that the machine was made with. */
  keys: string[];
  /** When its provider first showed it ONLINE: the window for the proof begins here. */
  onlineAt: number | null;
  /** The number of attempts that failed, or proved an endpoint that has changed since. */
  attempts: number;
  /** The step at which the last try failed. */
  failedAt: ProbeStep | null;
  /** The endpoint that let the keys in, as `user@host:port`. */
  provedEndpoint: string | null;
  provedAt: number | null;
}

/** What became of the provider's instance after the deployment ended. `none`: there is none, or it is kept: see `isLost`. */
export type Cleanup = 'none' | 'wanted' | 'done';

export interface DeploymentRecord {
  id: string;
  /** A display label, as it was sent. */
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
  /** Of the offer, when it was deployed. */
  extras: Record<string, unknown>;
  /** The machine type's own minimum reservation. */
  providerMinimumRuntimeMinutes: number | null;

  status: DeploymentStatus;
  ipAddress: string | null;
  loginUser: string | null;
  sshPort: number | null;
  portForwards: PortForward[];
  failureReason: FailureReason | null;
  failureDetails: string | null;

  /** What the provider asks for the running instance; null: it is older than this field. */
  providerRateMicroUsd: number | null;
  /** What the provider asked when it was ordered; null: it is older than this field. */
  orderedProviderRateMicroUsd: number | null;
  /** The price of the running instance, with the markup, and what the team pays of it. */
  originalRateMicroUsd: number;
  rateMicroUsd: number;
  discountPercentage: number;
  /** Null until it was stopped once. */
  originalStoppedRateMicroUsd: number | null;
  stoppedRateMicroUsd: number | null;
  /** The sum of what the ledger has taken for it. Written by the ledger alone. */
  totalCostMicroUsd: number;
  /** The end of the newest slice. Written by the ledger alone. */
  lastCreditDeductionAt: number | null;

  createdAt: number;
  /** The first observed `running`. */
  startedAt: number | null;
  /** When it ended. */
  stoppedAt: number | null;
  /** The last stop; null while it is not stopped. */
  pausedAt: number | null;
  /** The length of the stops that are over, in milliseconds. */
  pausedMs: number;

  /** The unique name that it has at the provider, by which a lost one is found. */
  providerName: string;
  providerInstanceId: string | null;
  launch: Launch;
  action: DeploymentIntent | null;
  /** Of the last change that was refused. The next change leaves it: a request may not have read it yet. */
  refusal: Refusal | null;
  suspicion: Suspicion | null;
  /** When the provider last confirmed the record: it is billed at least until then. */
  observedAt: number | null;
  cleanup: Cleanup;
  /** Grows with every write; an observation of an older revision is not applied. */
  revision: number;
  /** Null before its instance is known, and where it is older than the proof. */
  sshProof: SshProof | null;
}

/** What all lines of the log about a deployment share, from its create on. */
export function logNames({ id, teamId, launch }: Pick<DeploymentRecord, 'id' | 'teamId' | 'launch'>) {
  const { requestId } = launch;
  return { deployment: id, team: teamId, ...(requestId !== undefined && { request_id: requestId }) };
}

/** Whether it may still run, and cost. */
export function isActive({ status }: Pick<DeploymentRecord, 'status'>): boolean {
  return activeStatuses.includes(status);
}

export type LostDeployment = DeploymentRecord & { providerInstanceId: string };

/**
 * Whether it ended because its provider answered 404 for its instance. If that is there after all, it is kept: absence
 * is never an order, so only an operator has it deleted.
 */
export function isLost(record: DeploymentRecord): record is LostDeployment {
  return !isActive(record) && record.providerInstanceId !== null && record.cleanup === 'none';
}

const progressTexts: Readonly<Record<DeploymentIntent['kind'], string>> = {
  pause: 'It is being stopped.',
  resume: 'It is being started.',
  restart: 'It is being restarted.',
  volume: 'A volume of it is being changed.',
};

/**
 * One change at a time (M: 409, "Another change (volume change, earlier restart) is in flight").
 *
 * @throws {ApiError} CHANGE_IN_PROGRESS
 */
export function assertNoAction({ action }: DeploymentRecord, now: number, options: MarketplaceOptions): void {
  if (action === null || now - action.since >= options.polling.actionMs) return;
  throw new ApiError(
    'CHANGE_IN_PROGRESS',
    `${progressTexts[action.kind]} Wait a few minutes and try again.`,
    {
      details: { action: action.kind },
    },
  );
}
