import type { FailureCause } from './failure.ts';
import type { PlatformCall } from './history.ts';
import type { Lease } from './work.ts';

/** A finished call to the platform, or a finished proof of SSH. */
export interface TimedCall extends PlatformCall {
  /** When it began. */
  at: number;
}

/** The result of a step for its instance: ONLINE for the first time, or failed. */
export type Verdict =
  | { status: 'ONLINE'; offerId: string; afterMs: number }
  | { status: 'ERROR'; cause: FailureCause };

/** A finished step of work. */
export interface EndedStep {
  lease: Lease;
  /** The request that made the resource. */
  requestId: string | undefined;
  begunAt: number;
  endedAt: number;
  calls: readonly TimedCall[];
  /**
   * What follows. `error`: the step threw. `lost`: nothing was written, since the lease was lost or the platform is not
   * trusted.
   */
  next: string;
  /** Why something failed. */
  problem: string | undefined;
  verdict: Verdict | undefined;
}

/**
 * Receives events about the work of one platform, for metrics and traces. Its methods must return at once and never
 * throw.
 */
export interface Telemetry {
  /** Reports a finished call. `isOfStep` is false if the call is not part of a step, such as a listing. */
  called(call: TimedCall, isOfStep: boolean): void;
  stepEnded(step: EndedStep): void;
}
