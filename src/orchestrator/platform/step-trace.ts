import type { TimedCall, Verdict } from '../model/telemetry.ts';

/** A step that asks the platform more often than that is told by its first calls. */
const MAX_CALLS = 16;
const MAX_DETAIL = 1_000;

/** What one step of work asks of the platform and comes to, for the history of its instance, metrics and traces. */
export class StepTrace {
  readonly begunAt: number;
  readonly calls: TimedCall[] = [];
  /** The request that made the resource. */
  requestId: string | undefined;
  /** The end of the machine's console, where the step has read it. */
  console: string | undefined;
  /** What the step has decided of its instance; it counts once the transaction of `settled` is committed. */
  verdict: Verdict | undefined;
  /** What follows, and why, as it is written; undefined: nothing is. */
  settled: { next: string; problem: string | undefined } | undefined;

  constructor(begunAt: number) {
    this.begunAt = begunAt;
  }

  /** A transaction begins that settles the step, maybe once more. */
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
