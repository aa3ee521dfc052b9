import type { Configuration } from '../contract/configuration.ts';
import type { RestartStatus, VolumeUsage } from '../contract/extensions.ts';
import type { CreateInstanceRequest, Instance } from '../contract/instance.ts';
import type { CreateVolumeRequest, Volume, VolumeLocation } from '../contract/volume.ts';

/** Why a call failed. */
export type ProviderProblem =
  /** No connection: the name, the connection, TLS or a forbidden address. */
  | 'unreachable'
  /** No complete answer in time, or the connection broke. */
  | 'timeout'
  /** An invalid answer: HTML, truncated JSON, a field of the wrong type, a redirect, an unknown enum value. */
  | 'invalid'
  /** 400 and other 4xx. */
  | 'refused'
  /** 401 and 403. */
  | 'unauthorized'
  /** 404 with an Error body. */
  | 'not_found'
  /** 409; `code` says which. */
  | 'conflict'
  /** 429. */
  | 'limited'
  /** 5xx. */
  | 'failed';

/** A failed call to a provider. `message` contains no secret, and at most one line of the provider's text. */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';
  readonly problem: ProviderProblem;
  /** Null: there was no answer. */
  readonly status: number | null;
  /** The `error.code` of the answer. */
  readonly code: string | null;
  /** `details.reason` of the answer, as a Berth orchestrator gives one with `capacity_unavailable`. */
  readonly reason: string | null;
  /** The `error.message` of the answer, as one line. */
  readonly said: string | null;
  /** Whether the request may have taken effect despite the failure. Always false for reads. */
  readonly mayHaveHappened: boolean;

  constructor(
    problem: ProviderProblem,
    message: string,
    answer: Partial<
      Pick<ProviderError, 'status' | 'code' | 'reason' | 'said' | 'mayHaveHappened' | 'cause'>
    > = {},
  ) {
    super(message, answer.cause === undefined ? undefined : { cause: answer.cause });
    this.problem = problem;
    this.status = answer.status ?? null;
    this.code = answer.code ?? null;
    this.reason = answer.reason ?? null;
    this.said = answer.said ?? null;
    this.mayHaveHappened = answer.mayHaveHappened ?? false;
  }
}

/** The result of a call, or the error with which it failed. */
export async function orProviderError<T>(call: Promise<T>): Promise<T | ProviderError> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof ProviderError) return error;
    throw error;
  }
}

/** Time limit of this call. Default: the client's limit. */
export interface CallOptions {
  timeoutMs?: number;
}

/**
 * A resource in a list or in the answer to its create. Fields that cannot be read are left out. Only the id is always
 * there, as the orchestrator gave it: calls about an id that cannot be a segment of a path are refused.
 */
export type Identified<T extends { id: string }> = Pick<T, 'id'> & Partial<T>;

/** An instance and the mark of its answer. `pollInstance` uses the mark to recognise an unchanged answer. */
export interface MarkedInstance {
  instance: Instance;
  mark: string;
}

/**
 * Each answer is validated. Every method rejects with a {@link ProviderError}. `region` is always sent (O: Instances,
 * rule 1).
 */
export interface OrchestratorClient {
  listConfigurations(options?: CallOptions): Promise<Configuration[]>;
  /** Only offers that can be deployed now (O: Availability contract, 3). */
  listAvailability(region?: string, options?: CallOptions): Promise<Configuration[]>;
  listInstances(options?: CallOptions): Promise<Identified<Instance>[]>;
  /** `idempotencyKey` is sent as a header. Orchestrators need not support it. */
  createInstance(
    request: CreateInstanceRequest,
    idempotencyKey: string,
    options?: CallOptions,
  ): Promise<Identified<Instance>>;
  getInstance(id: string, region: string, options?: CallOptions): Promise<Instance>;
  /** An answer that still has `mark` is not parsed again. `mark` is null at the first poll. */
  pollInstance(
    id: string,
    region: string,
    mark: string | null,
    options?: CallOptions,
  ): Promise<MarkedInstance | 'unchanged'>;
  /** 404 counts as success (O: Instances, rule 3) and returns null. */
  deleteInstance(id: string, region: string, options?: CallOptions): Promise<Instance | null>;
  startInstance(id: string, region: string, options?: CallOptions): Promise<Instance>;
  stopInstance(id: string, region: string, options?: CallOptions): Promise<Instance>;
  listVolumeLocations(options?: CallOptions): Promise<VolumeLocation[]>;
  createVolume(
    request: CreateVolumeRequest,
    idempotencyKey: string,
    options?: CallOptions,
  ): Promise<Identified<Volume>>;
  getVolume(id: string, options?: CallOptions): Promise<Volume>;
  /** 404 counts as success (O: Volumes). Returns whether the provider had the volume. */
  deleteVolume(id: string, options?: CallOptions): Promise<boolean>;
  attachVolume(id: string, instanceIds: readonly string[], options?: CallOptions): Promise<Volume>;
  detachVolume(id: string, instanceIds: readonly string[], options?: CallOptions): Promise<Volume>;
  /** Only if `extras.berth` announces it, as the three below. */
  restartInstance(id: string, region: string, options?: CallOptions): Promise<Instance>;
  restartStatus(id: string, region: string, options?: CallOptions): Promise<RestartStatus>;
  resizeVolume(id: string, sizeGb: number, options?: CallOptions): Promise<Volume>;
  listVolumeUsage(options?: CallOptions): Promise<VolumeUsage[]>;
  close(): Promise<void>;
}
