import type { TimeSources } from './steady-time.ts';

/** How fast the time approaches a reference that was set, as a share of the elapsed time. */
const SLEW = 0.1;
/** Clocks that differ by less are considered equal, in milliseconds. NTP keeps them closer. */
const AGREES_WITHIN_MS = 1_000;
const TELL_ABOVE_MS = 5_000;
/** A longer gap counts as a clock that was set, even if the clocks agree: servers are not paused for a day. */
const LONGEST_PAUSE_MS = 24 * 60 * 60 * 1000;

export interface SharedTimeSources extends Pick<TimeSources, 'wallNow' | 'monotonicNow'> {
  /** Called when the process was paused for `byMs` milliseconds and the time has caught up. */
  onPause?: (byMs: number) => void;
  /**
   * Called once when the reference deviates from the time by some seconds. `byMs` is negative if the reference is
   * behind.
   */
  onJump?: (byMs: number) => void;
}

/**
 * The time of processes that share a database: its clock is their reference. The time never goes back. After a pause
 * (the reference is ahead, and the wall clock agrees), it jumps to the reference. If only the reference was set, it
 * approaches it by a tenth of the elapsed time, so no lease expires because of it.
 */
export class SharedTime {
  readonly #sources: SharedTimeSources;
  #readAt: number;
  #time: number;
  /** How far the reference is ahead of the time, as last measured. */
  #aheadMs = 0;
  /** How far the wall clock was ahead of the monotonic clock when the reference was last read. */
  #wallBase: number;
  #isAnchored = false;
  #isReported = false;

  constructor(sources: SharedTimeSources) {
    this.#sources = sources;
    this.#readAt = sources.monotonicNow();
    this.#time = sources.wallNow();
    this.#wallBase = this.#time - this.#readAt;
  }

  /** Whole milliseconds since the Unix epoch. */
  now(): number {
    const monotonic = this.#sources.monotonicNow();
    const passed = Math.max(0, monotonic - this.#readAt);
    this.#readAt = Math.max(this.#readAt, monotonic);
    const most = SLEW * passed;
    const follow = Math.min(Math.max(this.#aheadMs, -most), most);
    this.#time += passed + follow;
    this.#aheadMs -= follow;
    return Math.floor(this.#time);
  }

  /**
   * How far the time is ahead of the reference, in milliseconds. A jump of the wall clock means a pause or a clock that
   * was set. Until the reference is read again, the larger of the two differences is returned.
   */
  offsetMs(): number {
    this.now();
    const { wallNow, monotonicNow } = this.#sources;
    const leapMs = wallNow() - monotonicNow() - this.#wallBase;
    return Math.abs(leapMs) > Math.max(AGREES_WITHIN_MS, Math.abs(this.#aheadMs))
      ? 0 - leapMs
      : 0 - this.#aheadMs;
  }

  /**
   * Reads the reference. `ask` returns milliseconds since the Unix epoch, assumed to be measured halfway through the
   * call. An answer that took too long is ignored. Rejects as `ask` does.
   */
  async hear(ask: () => Promise<number>): Promise<void> {
    const { wallNow, monotonicNow } = this.#sources;
    const askedAt = monotonicNow();
    const wallBase = wallNow() - askedAt;
    const reference = await ask();
    const heardAt = monotonicNow();
    const wall = wallNow();
    const isSure =
      heardAt - askedAt < AGREES_WITHIN_MS && Math.abs(wall - heardAt - wallBase) < AGREES_WITHIN_MS;
    if (!isSure && this.#isAnchored) return;
    this.#wallBase = wall - heardAt;
    this.#compare(reference + (heardAt - askedAt) / 2, wall);
  }

  #compare(reference: number, wall: number): void {
    this.now();
    this.#aheadMs = reference - this.#time;
    if (!this.#isAnchored) {
      this.#isAnchored = true;
      this.#step();
    } else if (
      this.#aheadMs > AGREES_WITHIN_MS &&
      this.#aheadMs < LONGEST_PAUSE_MS &&
      Math.abs(wall - reference) < AGREES_WITHIN_MS
    ) {
      this.#sources.onPause?.(this.#aheadMs);
      this.#step();
    }
    if (Math.abs(this.#aheadMs) < AGREES_WITHIN_MS) this.#isReported = false;
    if (Math.abs(this.#aheadMs) > TELL_ABOVE_MS && !this.#isReported) {
      this.#isReported = true;
      this.#sources.onJump?.(this.#aheadMs);
    }
  }

  #step(): void {
    this.#time += this.#aheadMs;
    this.#aheadMs = 0;
  }
}
