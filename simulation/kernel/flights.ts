import type { Scheduler } from '../../test/support/time/scheduler.ts';
import type { Chance } from './chance.ts';
import type { ServerProcess } from './process.ts';

/** Calls of processes that are under way to what they run on. */
export class Flights {
  readonly #scheduler: Scheduler;
  readonly #all = new Set<{ process: ServerProcess; cancel(): void; abandon(): void }>();

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** Runs `land` later. `abandon` fails it for a caller that still waits. Returns what keeps it from landing. */
  begin(process: ServerProcess, afterMs: number, land: () => void, abandon: () => void): () => void {
    const { cancel } = this.#scheduler.after(afterMs, () => {
      this.#all.delete(flight);
      land();
    });
    const flight = {
      process,
      abandon,
      cancel: () => {
        cancel();
        this.#all.delete(flight);
      },
    };
    this.#all.add(flight);
    return flight.cancel;
  }

  /** A process ended: half of what it had sent is lost; the rest arrives. */
  died(process: ServerProcess, chance: Chance): void {
    for (const flight of [...this.#all])
      if (flight.process === process && chance.happens(0.5)) flight.cancel();
  }

  /** Fails all of them: none arrives any more. */
  clear(): void {
    for (const flight of [...this.#all]) {
      flight.cancel();
      flight.abandon();
    }
  }
}
