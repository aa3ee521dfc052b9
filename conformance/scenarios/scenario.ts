import { type JsonObject, textField } from '../text/json.ts';
import { successOf } from '../transcript/exchange.ts';
import type { Exchange, Level } from '../transcript/records.ts';
import type { Instance, Session } from './session.ts';

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

/** The run's instance, with the read that last showed it ONLINE. */
export interface OnlineInstance {
  instance: Instance;
  shown: JsonObject;
}

/** The instance, or undefined once it is said that the scenario goes without. */
export function requirePrimary(session: Session, scenario: string): Instance | undefined {
  if (session.primary === undefined)
    session.skip([scenario], session.whyNoPrimary ?? 'the run has no instance to do it with');
  return session.primary;
}

/** The instance while it is ONLINE, or undefined once it is said that the scenario goes without. */
export function requireOnline(session: Session, scenario: string): OnlineInstance | undefined {
  const instance = requirePrimary(session, scenario);
  if (instance === undefined) return undefined;
  const shown = session.online;
  if (shown !== undefined) return { instance, shown };
  session.skip([scenario], session.whyNotOnline ?? 'the instance is not ONLINE');
  return undefined;
}

/** Why steps are not taken with it. */
export const RECLAIMED = 'the SPOT instance was reclaimed';

/** Whether a read shows the end of a SPOT instance, which nobody has to have asked for. */
export function isReclaimed({ placement }: Instance, read: Exchange | undefined): boolean {
  if (placement.offer['instance_type'] !== 'SPOT' || read === undefined) return false;
  const status = textField(successOf(read), 'status') ?? '';
  return read.answer?.status === 404 || ['DESTROYING', 'DESTROYED'].includes(status);
}
