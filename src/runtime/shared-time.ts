import type { TimeSources } from './steady-time.ts';

/** How fast the time follows a reference that was set, as a share of the time that passes. */
const SLEW = 0.1;
/** Clocks that differ by less agree, in milliseconds; NTP keeps them closer. */
const AGREES_WITHIN_MS = 1_000;
const TELL_ABOVE_MS = 5_000;
/** What is longer is taken for a clock that was set, however many agree: nobody pauses a server for a day. */
const LONGEST_PAUSE_MS = 24 * 60 * 60 * 1000;

export interface SharedTimeSources extends Pick<TimeSources, 'wallNow' | 'monotonicNow'> {
  /** The process was paused for `byMs` milliseconds, and the time has made up for it. */
  onPause?: (byMs: number) => void;
  /** Called once when the reference has left the time by some seconds; `byMs` is negative if it is behind. */
  onJump?: (byMs: number) => void;
}

/**
 * The time of several processes that share a reference, their database's clock. It begins at the reference and never
 * goes back. If the reference is ahead and the machine's wall clock agrees with it, the process was paused: the time
 * steps forward at once, because the others have gone on. If the reference alone was set, the time follows it by a
 * tenth of what passes, so that nothing runs out for it.
 */
export class SharedTime {
  readonly #sources: SharedTimeSources;
  #readAt: number;
  #time: number;
  /** How far the reference is ahead of the time, as far as it is known. */
  #aheadMs = 0;
  /** How far the wall clock is ahead of the monotonic one, as it was when the reference was heard. */
  #wallBase: number;
  #isAnchored = false;
  #isTold = false;

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
   * How far the time is ahead of the reference, in milliseconds. A wall clock that leaps says that the process was
   * paused, or that the clock was set: until the reference is heard again, the worse of it is told.
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
   * Hears the reference: `ask` answers it in milliseconds since the Unix epoch, and is taken to have read it halfway.
   * What took too long to say when it was is not used. Rejects as `ask` does.
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
    if (Math.abs(this.#aheadMs) < AGREES_WITHIN_MS) this.#isTold = false;
    if (Math.abs(this.#aheadMs) > TELL_ABOVE_MS && !this.#isTold) {
      this.#isTold = true;
      this.#sources.onJump?.(this.#aheadMs);
    }
  }

  #step(): void {
    this.#time += this.#aheadMs;
    this.#aheadMs = 0;
  }
}
