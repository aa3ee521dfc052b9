import type { Clock } from '../../http/clock.ts';

/**
 * Virtual time that advances by itself: if a caller sleeps, no real work is awaited and nothing happened for some turns
 * of the event loop, it jumps to the next due time.
 */
export interface AutoClock extends Clock {
  /**
   * Calls back at that time. Returns a function that cancels it. Timers alone do not advance time: they fire in order
   * on the way to the earliest sleeper, each at its own time.
   */
  after(ms: number, callback: () => void): () => void;
  /** Stops time until the returned function is called, while real work such as a socket is awaited. */
  hold(): () => void;
  /** Holds time until `work` is settled. */
  during<T>(work: Promise<T>): Promise<T>;
}

export interface AutoClockOptions {
  /** The initial value of `wall()`. */
  startWallMs?: number;
  /** Quiet turns of the event loop before time jumps. */
  quietTurns?: number;
}

interface Alarm {
  dueMs: number;
  ring: () => void;
}

const START_WALL_MS = Date.UTC(2026, 0, 1, 12);
const QUIET_TURNS = 4;

/** Creates a clock at 0 that advances only when a caller sleeps. */
export function createAutoClock(options: AutoClockOptions = {}): AutoClock {
  const { startWallMs = START_WALL_MS, quietTurns = QUIET_TURNS } = options;
  const sleepers = new Set<Alarm>();
  const timers = new Set<Alarm>();
  let nowMs = 0;
  let holds = 0;
  let quiet = 0;
  let isTurning = false;

  function stir(): void {
    quiet = 0;
    if (isTurning || holds > 0 || sleepers.size === 0) return;
    isTurning = true;
    setImmediate(turn);
  }

  function turn(): void {
    isTurning = holds === 0 && sleepers.size > 0;
    if (!isTurning) return;
    setImmediate(turn);
    quiet++;
    if (quiet >= quietTurns) jump();
  }

  /** Fires one alarm at a time, so that its effects happen at its time. */
  function jump(): void {
    quiet = 0;
    const sleeper = earliest(sleepers);
    if (sleeper === undefined) return;
    const timer = earliest(timers);
    const isTimerFirst = timer !== undefined && timer.dueMs <= sleeper.dueMs;
    const next = isTimerFirst ? timer : sleeper;
    (isTimerFirst ? timers : sleepers).delete(next);
    nowMs = Math.max(nowMs, next.dueMs);
    next.ring();
  }

  function hold(): () => void {
    let isHeld = true;
    holds++;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      holds--;
      stir();
    };
  }

  return {
    now: () => nowMs,
    wall: () => startWallMs + nowMs,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const stop = () => {
          sleepers.delete(sleeper);
          reject(signal?.reason);
          stir();
        };
        const wake = () => {
          signal?.removeEventListener('abort', stop);
          resolve();
        };
        const sleeper: Alarm = { dueMs: nowMs + Math.max(0, ms), ring: wake };
        sleepers.add(sleeper);
        signal?.addEventListener('abort', stop, { once: true });
        stir();
      }),
    after(ms, callback) {
      const timer: Alarm = { dueMs: nowMs + Math.max(0, ms), ring: callback };
      timers.add(timer);
      stir();
      return () => void timers.delete(timer);
    },
    hold,
    async during(work) {
      const release = hold();
      try {
        return await work;
      } finally {
        release();
      }
    },
  };
}

/** The alarm that is due first. Of several at the same time, the one that was set first. */
function earliest(alarms: ReadonlySet<Alarm>): Alarm | undefined {
  let first: Alarm | undefined;
  for (const alarm of alarms)
    if (Number.isFinite(alarm.dueMs) && (first === undefined || alarm.dueMs < first.dueMs)) first = alarm;
  return first;
}
