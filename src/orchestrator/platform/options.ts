import type { Clock } from '../../ports/clock.ts';

/** How many instances the platform may take before an operator has to look. */
export interface LossCapOptions {
  /** Of the instances there were, from 0 to 1. */
  share: number;
  /** However few there were. */
  least: number;
  windowMs: number;
  /** The same of the instances of one host: all of them at once are more likely a host that answers wrong. */
  perHost: { share: number; least: number };
}

/** How the durable work is driven. All times in milliseconds. */
export interface ReconcileOptions {
  /** How long a claim on a row of work lasts; longer than any call to the platform. */
  leaseMs: number;
  /** The deadline of one call to the platform, and of one SSH proof. */
  callTimeoutMs: number;
  /** The longest pause between two SSH proofs of an instance that is not ONLINE yet. */
  probeIntervalMs: number;
  /** Steps under way at once, for instances and for volumes each: one that hangs takes one place only. */
  maxConcurrentSteps: number;
  /** The first pause before a step is tried again; it doubles up to the last. */
  firstRetryMs: number;
  lastRetryMs: number;
  /** The longest time after a start for which unknown ids are answered 503, until a complete listing. */
  restoreDoubtMs: number;
  /** How long all machines of a platform must be missing before that is accepted. */
  emptyForMs: number;
  /** How often the platform's listing is held against the rows. */
  watchIntervalMs: number;
  /** The shortest pause between two listings. */
  listPauseMs: number;
  /** Above this share of machines that are missing, from 0 to 1, a listing is not believed. */
  suspectShare: number;
  maxLosses: LossCapOptions;
  /**
   * How long the machine of a failed instance is kept for the operator before it is removed. Null: what a failed create made is
   * removed at once, and a machine that failed later is kept until its DELETE.
   */
  holdFailedMs: number | null;
  /** How long a lost instance keeps its unit. */
  holdLostClaimsMs: number;
  /** How long the disks of an instance that ended without a request are kept after its DELETE. */
  keepDisksMs: number;
  /** What is done with a machine that carries our tag and has no live row. */
  orphans: 'log' | 'stop' | 'reap';
  /** How old an orphan must be before anything is done with it. */
  orphanGraceMs: number;
}

/** What no configuration sets. */
export const fixedReconcileOptions = {
  maxConcurrentSteps: 64,
  firstRetryMs: 250,
  lastRetryMs: 30_000,
} satisfies Partial<ReconcileOptions>;

/** The shortest pause between two listings: a step that waits for one still has most of its lease. */
export function listPauseMs(leaseMs: number): number {
  return Math.min(250, leaseMs / 8);
}

/** The longest that one call may take, however long the lease is. */
const MAX_CALL_MS = 20_000;

/**
 * A step makes up to two calls and waits for two listings, and writes after them, all within its lease. A delete beside a silent
 * host may wait for one more before: where that takes too long, its next attempt sends the removal.
 */
export function callTimeoutMs(leaseMs: number): number {
  return Math.min(MAX_CALL_MS, leaseMs / 4);
}

export const CLOCK_SKEW_ALARM =
  "the clock here is too far from the database's: no work is claimed and nothing is ended until it is close again; check NTP on both";

/** By how much the clocks of two servers that work on one database may differ: the margin that a lease has for one call. */
export function clockMarginMs({ leaseMs }: { leaseMs: number }): number {
  return callTimeoutMs(leaseMs);
}

/** Whether a lease that another process holds means here what it means there. */
export function isClockInSync(clock: Pick<Clock, 'offsetMs'>, options: { leaseMs: number }): boolean {
  return Math.abs(clock.offsetMs?.() ?? 0) <= clockMarginMs(options);
}
