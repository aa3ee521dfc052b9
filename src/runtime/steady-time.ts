/** How fast the steady time approaches the wall clock, as a share of the elapsed time. */
const SLEW = 0.1;
const TELL_ABOVE_MS = 5_000;
const FORGET_BELOW_MS = 1_000;

export interface TimeSources {
  /** Milliseconds since the Unix epoch, by the machine's clock. It may jump. */
  wallNow: () => number;
  /** Milliseconds since an arbitrary moment. It never decreases. */
  monotonicNow: () => number;
  /**
   * Called once when the wall clock deviates from the steady time by some seconds. `byMs` is negative if it is behind.
   */
  onJump?: (byMs: number) => void;
}

/**
 * Creates a time that starts at the wall clock, never goes back, and approaches it by at most a tenth of the elapsed
 * time. Setting the wall clock, even by a year, expires no lease and reaches no deadline.
 * @returns whole milliseconds since the Unix epoch
 */
export function createSteadyTime({ wallNow, monotonicNow, onJump }: TimeSources): () => number {
  let readAt = monotonicNow();
  let time = wallNow();
  let isReported = false;
  return () => {
    const monotonic = monotonicNow();
    const passed = Math.max(0, monotonic - readAt);
    readAt = Math.max(readAt, monotonic);
    const ahead = wallNow() - (time + passed);
    const most = SLEW * passed;
    time += passed + Math.min(Math.max(ahead, -most), most);
    if (Math.abs(ahead) < FORGET_BELOW_MS) isReported = false;
    if (Math.abs(ahead) > TELL_ABOVE_MS && !isReported) {
      isReported = true;
      onJump?.(ahead);
    }
    return Math.floor(time);
  };
}
