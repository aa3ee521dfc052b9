/** How fast the steady time follows the wall clock, as a share of the time that passes. */
const SLEW = 0.1;
const TELL_ABOVE_MS = 5_000;
const FORGET_BELOW_MS = 1_000;

export interface TimeSources {
  /** Milliseconds since the Unix epoch, as the machine has it now: it may jump. */
  wallNow: () => number;
  /** Milliseconds since some moment: it only grows. */
  monotonicNow: () => number;
  /** Called once when the wall clock has left the steady time by some seconds; `byMs` is negative if it is behind. */
  onJump?: (byMs: number) => void;
}

/**
 * A time that begins at the wall clock, never goes back, and follows it from then on by at most a tenth of the time
 * that passes. A wall clock that is set by an hour or a year ends no lease and reaches no deadline.
 *
 * @returns whole milliseconds since the Unix epoch
 */
export function createSteadyTime({ wallNow, monotonicNow, onJump }: TimeSources): () => number {
  let readAt = monotonicNow();
  let time = wallNow();
  let isTold = false;
  return () => {
    const monotonic = monotonicNow();
    const passed = Math.max(0, monotonic - readAt);
    readAt = Math.max(readAt, monotonic);
    const ahead = wallNow() - (time + passed);
    const most = SLEW * passed;
    time += passed + Math.min(Math.max(ahead, -most), most);
    if (Math.abs(ahead) < FORGET_BELOW_MS) isTold = false;
    if (Math.abs(ahead) > TELL_ABOVE_MS && !isTold) {
      isTold = true;
      onJump?.(ahead);
    }
    return Math.floor(time);
  };
}
