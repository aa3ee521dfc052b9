import type { Clock } from '../../src/ports/clock.ts';
import { createSteadyTime } from '../../src/runtime/steady-time.ts';
import type { Scheduled, Scheduler } from '../../test/support/time/scheduler.ts';

/** The process has ended. The error rolls back its transactions; nothing that still runs sees it. */
class Died extends Error {
  override readonly name = 'Died';
}

/**
 * One process of a replica, from its start to its end. Answers and timers reach it only while it runs: while it is paused
 * they wait, and once it is dead they are dropped.
 */
export class ServerProcess {
  readonly name: string;
  readonly #scheduler: Scheduler;
  readonly #kept: (() => void)[] = [];
  readonly #timers = new Set<Scheduled>();
  readonly #atDeath = new Set<() => void>();
  #state: 'running' | 'paused' | 'dead' = 'running';
  #pausedUntil = 0;

  constructor(name: string, scheduler: Scheduler) {
    this.name = name;
    this.#scheduler = scheduler;
  }

  get isDead(): boolean {
    return this.#state === 'dead';
  }

  get isPaused(): boolean {
    return this.#state === 'paused';
  }

  /** When its last pause ended; infinite while it is paused, 0 if it never was. */
  get pausedUntil(): number {
    return this.isPaused ? Number.POSITIVE_INFINITY : this.#pausedUntil;
  }

  /** How many of its timers are still to fire. */
  get openTimers(): number {
    return this.#timers.size;
  }

  whenRunning(run: () => void): void {
    this.#scheduler.noteActivity();
    if (this.#state === 'running') run();
    else if (this.#state === 'paused') this.#kept.push(run);
  }

  /** Calls something outside of the process: the call leaves it, and the answer arrives, only while it runs. */
  reach<T>(ask: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.whenRunning(() =>
        ask().then(
          (value) => this.whenRunning(() => resolve(value)),
          (error) => this.whenRunning(() => reject(error)),
        ),
      );
    });
  }

  /** Settles as `work` does, or rejects when the process dies first. */
  orDeath<T>(work: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.isDead) return reject(new Died(this.name));
      const die = (): void => reject(new Died(this.name));
      this.#atDeath.add(die);
      work()
        .finally(() => this.#atDeath.delete(die))
        .then(resolve, reject);
    });
  }

  pause(): void {
    if (this.#state === 'running') this.#state = 'paused';
  }

  resume(): void {
    if (this.#state !== 'paused') return;
    this.#state = 'running';
    this.#pausedUntil = this.#scheduler.now;
    for (const run of this.#kept.splice(0)) this.whenRunning(run);
  }

  kill(): void {
    this.#state = 'dead';
    this.#kept.length = 0;
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    for (const die of [...this.#atDeath]) die();
    this.#atDeath.clear();
  }

  /** A clock whose wall time is `offsetMs` off, read as production reads it; its timers are exact. */
  clock(offsetMs: () => number): Clock {
    return {
      now: createSteadyTime({
        wallNow: () => this.#scheduler.now + offsetMs(),
        monotonicNow: () => this.#scheduler.now,
      }),
      setTimer: (delayMs, callback) => {
        const timer: Scheduled = this.#scheduler.after(Math.ceil(delayMs), () => {
          if (this.isDead) return;
          this.whenRunning(() => {
            if (this.#timers.delete(timer)) callback();
          });
        });
        this.#timers.add(timer);
        return {
          cancel: () => {
            timer.cancel();
            this.#timers.delete(timer);
          },
        };
      },
    };
  }
}
