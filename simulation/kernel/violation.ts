/** What an invariant found broken. */
export class Violation extends Error {
  override readonly name = 'Violation';
  /** Such as I8, as in docs/reliability.md. */
  readonly invariant: string;
  /** What the trace is searched for. */
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
