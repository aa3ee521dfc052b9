import type { PlatformCall } from '../model/history.ts';

/** A step that asks the platform more often than that is told by its first calls. */
const MAX_CALLS = 16;
const MAX_DETAIL = 1_000;

/** What one step of work asks of the platform, for the history of its instance. */
export class StepTrace {
  readonly begunAt: number;
  readonly calls: PlatformCall[] = [];
  /** The end of the machine's console, where the step has read it. */
  console: string | undefined;

  constructor(begunAt: number) {
    this.begunAt = begunAt;
  }

  add(call: string, outcome: string, tookMs: number, detail?: string): void {
    if (this.calls.length >= MAX_CALLS) return;
    this.calls.push({
      call,
      outcome,
      tookMs: Math.max(0, Math.round(tookMs)),
      ...(detail !== undefined && { detail: detail.slice(0, MAX_DETAIL) }),
    });
  }
}
