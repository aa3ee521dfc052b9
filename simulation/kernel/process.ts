import type { Clock } from '../../src/ports/clock.ts';
import { createSteadyTime } from '../../src/runtime/steady-time.ts';
import type { Scheduled, Scheduler } from './scheduler.ts';

/** The process of the replica has ended; it rolls back what runs, and is told to nobody. */
class Died extends Error {
  override readonly name = 'Died';
}

/**
 * One process of a replica, from its start to its end. What it waits for reaches it only while it runs: while it is
 * paused that is kept for later, and once it is dead nothing of it ever runs again.
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

  /** When it last ran again after a pause, or will; 0: it never was paused. */
  get pausedUntil(): number {
    return this.isPaused ? Number.POSITIVE_INFINITY : this.#pausedUntil;
  }

  /** Timers that are still to fire in it. */
  get openTimers(): number {
    return this.#timers.size;
  }

  whenRunning(run: () => void): void {
    this.#scheduler.noteActivity();
    if (this.#state === 'running') run();
    else if (this.#state === 'paused') this.#kept.push(run);
  }

  /** What comes from outside of the process: it is asked for, and its answer arrives, only while the process runs. */
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

  /** Production's steady time over a wall clock that is `offsetMs` off; timers are not. */
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
