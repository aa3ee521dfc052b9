/** An illegal transition: a bug in the program, never bad input. */
export class IllegalTransition extends Error {
  override readonly name = 'IllegalTransition';
}

/** For each state of a resource, the states that may follow it directly. */
export type TransitionTable<State extends string> = Readonly<Record<State, readonly State[]>>;

export function canTransition<State extends string>(
  table: TransitionTable<State>,
  from: State,
  to: State,
): boolean {
  return table[from].includes(to);
}

/** @throws {IllegalTransition} if `table` has no edge from `from` to `to`. */
export function assertTransition<State extends string>(
  table: TransitionTable<State>,
  from: State,
  to: State,
  resource: string,
): void {
  if (!canTransition(table, from, to))
    throw new IllegalTransition(`${resource}: ${from} → ${to} is not a legal transition`);
}
