import type { Scheduler } from '../../test/support/time/scheduler.ts';

const STEP_MS = 30_000;

/** An invariant does not hold. */
export class Violation extends Error {
  override readonly name = 'Violation';
  /** Such as I8, as in docs/reliability.md. */
  readonly invariant: string;
  /** The trace of a failure shows the events that name one of these. */
  readonly words: readonly string[];

  constructor(invariant: string, message: string, words: readonly string[] = []) {
    super(`${invariant}: ${message}`);
    this.invariant = invariant;
    this.words = words;
  }
}

/** @throws {Violation} unless `condition` holds */
export function hold(
  invariant: string,
  condition: boolean,
  message: () => string,
  words: readonly string[] = [],
): asserts condition {
  if (!condition) throw new Violation(invariant, message(), words);
}

/** The violation that `check` throws; undefined: it throws none. Other errors pass through. */
export async function findViolation(check: () => Promise<void>): Promise<Violation | undefined> {
  try {
    await check();
    return undefined;
  } catch (error) {
    if (error instanceof Violation) return error;
    throw error;
  }
}

/** Lets time go on, and acts in between, until `check` holds. @throws {Violation} that it still finds at `latest` */
export async function untilHeld(
  scheduler: Scheduler,
  latest: number,
  check: () => Promise<void>,
  act: () => Promise<void>,
): Promise<void> {
  let problem = await findViolation(check);
  while (problem !== undefined && scheduler.now < latest) {
    await scheduler.runUntil(scheduler.now + STEP_MS);
    await act();
    problem = await findViolation(check);
  }
  if (problem !== undefined) throw problem;
}

/** I28: a server that was closed has left nothing behind. */
export function nothingIsLeft(left: { timers: number; subscriptions: number }): void {
  hold('I28', left.timers === 0, () => `${left.timers} timers are left`);
  hold('I28', left.subscriptions === 0, () => `${left.subscriptions} subscriptions are left`);
}
