import type { Configuration } from '../contract/configuration.ts';
import type { Changes, RestartStatus } from '../contract/extensions.ts';
import type { CreateInstanceRequest, Instance } from '../contract/instance.ts';
import type { CreateVolumeRequest, Volume, VolumeLocation } from '../contract/volume.ts';

/** What came of a call that did not succeed. */
export type ProviderProblem =
  /** Nobody was reached: the name, the connection, TLS, a forbidden address. */
  | 'unreachable'
  /** No whole answer came in time, or the connection broke. */
  | 'timeout'
  /** An answer that is none: HTML, half of a JSON, a field of the wrong type, a redirect, an unknown enum value. */
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

/** A call to a provider that did not succeed. `message` has no secret, and no more of the provider's text than a line. */
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
  /** Whether what was asked for may have happened all the same. Always false for reads. */
  readonly mayHaveHappened: boolean;

  constructor(
    problem: ProviderProblem,
    message: string,
    {
      status = null,
      code = null,
      reason = null,
      said = null,
      mayHaveHappened = false,
      cause,
    }: {
      status?: number | null;
      code?: string | null;
      reason?: string | null;
      said?: string | null;
      mayHaveHappened?: boolean;
      cause?: unknown;
    } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.problem = problem;
    this.status = status;
    this.code = code;
    this.reason = reason;
    this.said = said;
    this.mayHaveHappened = mayHaveHappened;
  }
}

/** How long this call may take; the client's own limit where it is left out. */
export interface CallOptions {
  timeoutMs?: number;
}

/** An instance, and the mark of the answer: what `pollInstance` recognises the same answer by. */
export interface MarkedInstance {
  instance: Instance;
  mark: string;
}

export interface ChangesOptions extends CallOptions {
  /** How long the orchestrator may wait for a change, in milliseconds, at most 30 s. It is added to `timeoutMs`. */
  waitMs?: number;
  /** Ends the call. */
  signal?: AbortSignal;
}

/**
 * One orchestrator that keeps O:. Each answer is validated; every method rejects with a {@link ProviderError}. `region`
 * is always sent (O: Instances, rule 1).
 */
export interface OrchestratorClient {
  listConfigurations(options?: CallOptions): Promise<Configuration[]>;
  /** Only what can be deployed now (O: Availability contract, 3). */
  listAvailability(region?: string, options?: CallOptions): Promise<Configuration[]>;
  listInstances(options?: CallOptions): Promise<Instance[]>;
  /** `idempotencyKey` goes along as a header: an orchestrator may know it, and need not. */
  createInstance(
    request: CreateInstanceRequest,
    idempotencyKey: string,
    options?: CallOptions,
  ): Promise<Instance>;
  getInstance(id: string, region: string, options?: CallOptions): Promise<Instance>;
  /**
   * As `getInstance`, for a caller that remembers the mark of the last answer: where the answer is still that one, it is
   * neither parsed nor checked again. `mark` null: nothing is remembered.
   */
  pollInstance(
    id: string,
    region: string,
    mark: string | null,
    options?: CallOptions,
  ): Promise<MarkedInstance | 'unchanged'>;
  /** 404 counts as success (O: Instances, rule 3) and gives null. */
  deleteInstance(id: string, region: string, options?: CallOptions): Promise<Instance | null>;
  startInstance(id: string, region: string, options?: CallOptions): Promise<Instance>;
  stopInstance(id: string, region: string, options?: CallOptions): Promise<Instance>;
  listVolumeLocations(options?: CallOptions): Promise<VolumeLocation[]>;
  createVolume(request: CreateVolumeRequest, idempotencyKey: string, options?: CallOptions): Promise<Volume>;
  getVolume(id: string, options?: CallOptions): Promise<Volume>;
  /** 404 counts as success (O: Volumes). Whether the provider had it. */
  deleteVolume(id: string, options?: CallOptions): Promise<boolean>;
  attachVolume(id: string, instanceIds: readonly string[], options?: CallOptions): Promise<Volume>;
  detachVolume(id: string, instanceIds: readonly string[], options?: CallOptions): Promise<Volume>;
  /** Only where `extras.berth` announces it, as the three below. */
  restartInstance(id: string, region: string, options?: CallOptions): Promise<Instance>;
  restartStatus(id: string, region: string, options?: CallOptions): Promise<RestartStatus>;
  resizeVolume(id: string, sizeGb: number, options?: CallOptions): Promise<Volume>;
  /** What changed since the cursor of an earlier answer; null: only where the changes end now. */
  listChanges(since: string | null, options?: ChangesOptions): Promise<Changes>;
  /** Lets the connections go. */
  close(): Promise<void>;
}
