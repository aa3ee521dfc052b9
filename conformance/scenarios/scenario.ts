import type { Level } from '../transcript/records.ts';
import type { Session } from './session.ts';

/** A part of a run: it drives the target, and leaves what it saw in the transcript. It judges nothing. */
export interface Scenario {
  /** The first part of the name of each of its steps. */
  id: string;
  level: Level;
  /** For the person who waits, e.g. `stops the instance`. */
  title: string;
  /** The scenarios without which it cannot run. */
  after: readonly string[];
  /** What it buys, for the plan: one entry for each instance or volume. */
  buys: readonly Purchase[];
  run(session: Session): Promise<void>;
}

export interface Purchase {
  type: 'instance' | 'volume';
  /** The offer: the cheapest that is available, or the one of `--race`, of which one unit more is tried than there are. */
  offer: 'cheapest' | 'race';
  what: string;
}
