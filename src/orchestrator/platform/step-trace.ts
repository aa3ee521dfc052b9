import type { TimedCall, Verdict } from '../model/telemetry.ts';

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
