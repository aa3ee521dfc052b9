import type { FailureCause } from './failure.ts';
import type { PlatformCall } from './history.ts';
import type { Lease } from './work.ts';

/** The upper bounds of the buckets of calls and of the time to ONLINE, in seconds. */
export const CALL_BUCKETS = [0.01, 0.05, 0.2, 1, 5, 15, 60];
export const ONLINE_BUCKETS = [5, 10, 20, 30, 45, 60, 90, 120, 180, 300, 600, 1_200];

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

/** Only the first calls of a step are recorded. */
const MAX_CALLS = 16;
const MAX_DETAIL = 1_000;

/** The calls and the outcome of one step of work, for the history of its instance, metrics and traces. */
export class StepTrace {
  readonly begunAt: number;
  readonly calls: TimedCall[] = [];
  /** The request that made the resource. */
  requestId: string | undefined;
  /** The end of the machine's console, if the step has read it. */
  console: string | undefined;
  /** The step's decision about its instance. It is valid once the transaction of `settled` is committed. */
  verdict: Verdict | undefined;
  /** The next step and the problem, as written to the database. Undefined if nothing is written. */
  settled: { next: string; problem: string | undefined } | undefined;

  constructor(begunAt: number) {
    this.begunAt = begunAt;
  }

  /**
   * Resets the outcome. Call it at the start of each transaction that settles the step; a transaction may run again.
   */
  begin(): void {
    this.verdict = undefined;
    this.settled = undefined;
  }

  settle({ step, problem }: { step: string; problem?: string }): void {
    this.settled = { next: step, problem };
  }

  add({ detail, ...call }: TimedCall): void {
    if (this.calls.length >= MAX_CALLS) return;
    this.calls.push({ ...call, ...(detail !== undefined && { detail: detail.slice(0, MAX_DETAIL) }) });
  }
}
