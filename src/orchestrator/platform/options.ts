import { remedies } from '../../ports/diagnosis.ts';
import { WORK_LEASE_MS } from '../../work/lease-time.ts';

/** How many instances of a platform, and of each of its hosts, may be lost before an operator has to decide. */
export interface LossCapOptions {
  /** Share of the instances before the losses, from 0 to 1. */
  share: number;
  /** Minimum of the cap, for few instances. */
  least: number;
}

/** Settings of the durable work. All times are in milliseconds. */
export interface ReconcileOptions {
  /** How long a claim on a row of work lasts. `work/lease-time.ts` has this time and those that derive from it. */
  leaseMs: number;
  /** The deadline of one call to the platform, and of one SSH proof. */
  callTimeoutMs: number;
  /** The longest pause between two SSH proofs of an instance that is not ONLINE yet. */
  probeIntervalMs: number;
  /** The limit on concurrent steps, for instances and for volumes each. A step that hangs takes one slot. */
  maxConcurrentSteps: number;
  /** The first pause before a step is retried. It doubles up to `lastRetryMs`. */
  firstRetryMs: number;
  lastRetryMs: number;
  /**
   * How long after a start unknown ids get a 503 without a complete listing. After a restore they get it until the
   * platform is reconciled.
   */
  restoreDoubtMs: number;
  /** How long all machines of a platform must be missing before that is accepted. */
  emptyForMs: number;
  /** How often the platform's listing is compared with the rows. */
  watchIntervalMs: number;
  /** The shortest pause between two listings. */
  listPauseMs: number;
  maxLosses: LossCapOptions;
  /**
   * How long the machine of a failed instance is kept for the operator. If null, a machine of a failed create is
   * removed at once, and a machine that failed later is kept until its DELETE.
   */
  holdFailedMs: number | null;
  /** How long a lost instance keeps its unit. */
  holdLostClaimsMs: number;
  /** How long the disks of an instance that ended without a request are kept after its DELETE. */
  keepDisksMs: number;
  /** How old a machine or a volume with Berth's tag and no row must be before it is an orphan. */
  orphanGraceMs: number;
}

/** The options that berth.yaml does not have. */
export const defaultReconcileOptions = {
  leaseMs: WORK_LEASE_MS,
  probeIntervalMs: 2_000,
  watchIntervalMs: 5_000,
  maxConcurrentSteps: 64,
  firstRetryMs: 250,
  lastRetryMs: 30_000,
  restoreDoubtMs: 600_000,
  emptyForMs: 600_000,
  holdLostClaimsMs: 3_600_000,
  orphanGraceMs: 600_000,
  maxLosses: { share: 0.2, least: 5 },
} satisfies Partial<ReconcileOptions>;

export const CLOCK_SKEW_ALARM = `this server's clock differs too much from the database's: no work is claimed and nothing is ended until they agree. ${remedies.clock}`;
