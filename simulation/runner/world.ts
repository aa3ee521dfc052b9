import { Scheduler, START_AT } from '../../test/support/time/scheduler.ts';
import { Journal } from '../kernel/journal.ts';
import { emptyTally, type Tally } from '../kernel/tally.ts';

/** The state that each kind of simulated world has. */
export abstract class BaseWorld {
  readonly scheduler = new Scheduler(START_AT);
  readonly journal = new Journal(() => this.scheduler.now);
  readonly tally: Tally = emptyTally();
  /** From now on no fault happens. */
  isCalm = false;
  isOver = false;
  #failure: { error: unknown } | undefined;

  /** Ends the run with an error that no caller waits for. */
  fail(error: unknown): void {
    this.#failure ??= { error };
  }

  /** @throws the error that was given to {@link fail} */
  assertSound(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }
}
