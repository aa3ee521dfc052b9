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
  /** How often the platform's listing is held against the rows. */
  watchIntervalMs: number;
  /** What is done with a machine that carries our tag and has no live row. */
  orphans: 'log' | 'stop' | 'reap';
  /** How old an orphan must be before anything is done with it. */
  orphanGraceMs: number;
}

export const defaultReconcileOptions: ReconcileOptions = {
  leaseMs: 30_000,
  callTimeoutMs: 20_000,
  probeIntervalMs: 2_000,
  maxConcurrentSteps: 64,
  firstRetryMs: 250,
  lastRetryMs: 30_000,
  watchIntervalMs: 5_000,
  orphans: 'log',
  orphanGraceMs: 600_000,
};
