import type { FailureCause } from './failure.ts';
import type { PlatformCall } from './history.ts';
import type { Lease } from './work.ts';

/** A call to the platform, or a proof of SSH, that has ended. */
export interface TimedCall extends PlatformCall {
  /** When it began. */
  at: number;
}

/** What became of an instance with a step: it is ONLINE for the first time, or failed. */
export type Verdict =
  | { status: 'ONLINE'; offerId: string; afterMs: number }
  | { status: 'ERROR'; cause: FailureCause };

/** A step of work that has ended. */
export interface EndedStep {
  lease: Lease;
  /** The request that made the resource. */
  requestId: string | undefined;
  begunAt: number;
  endedAt: number;
  calls: readonly TimedCall[];
  /** What follows; `error`: it threw · `lost`: nothing was written, since the lease was lost or the platform is not trusted. */
  next: string;
  /** Why, where something failed. */
  problem: string | undefined;
  verdict: Verdict | undefined;
}

/** Is told what the work of one platform does, for metrics and traces. It must return at once, and never throw. */
export interface Telemetry {
  /** `isOfStep` false: it belongs to no step, such as a listing. */
  called(call: TimedCall, isOfStep: boolean): void;
  stepEnded(step: EndedStep): void;
}
