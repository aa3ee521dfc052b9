import { Scheduler, START_AT } from '../../test/support/time/scheduler.ts';
import type { Chance } from './chance.ts';
import { Journal } from './journal.ts';
import { emptyTally, type Tally } from './tally.ts';

/** The state that each kind of simulated world has. */
export abstract class BaseWorld {
  abstract readonly chance: Chance;
  abstract readonly replicas: readonly { start(): void; end(): void }[];
  abstract readonly database: { close(): Promise<void> };
  abstract readonly scenario: {
    /** The mean pause between two commands, in milliseconds. */
    readonly paceMs: number;
  };
  /** Calls of the servers to what they run on: a platform, or providers. */
  abstract readonly calls: number;
  /** How many of these calls met each fault. */
  abstract readonly faultCounts: ReadonlyMap<string, number>;
  readonly scheduler = new Scheduler(START_AT);
  readonly journal = new Journal(() => this.scheduler.now);
  readonly tally: Tally = emptyTally();
  /** From now on no fault happens. */
  isCalm = false;
  /** From now on no process is started again. */
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
