import { type JsonObject, stringField } from '../text/json.ts';
import { successOf } from '../transcript/exchange.ts';
import type { Exchange, Level } from '../transcript/records.ts';
import type { Instance, Session } from './session.ts';

/** A part of a run: it sends requests and records them in the transcript. It judges nothing. */
export interface Scenario {
  /** Also the first part of its step names. */
  id: string;
  level: Level;
  /** Shown as progress, e.g. `stops the instance`. */
  title: string;
  /** The scenarios that must run before it. */
  after: readonly string[];
  /** How long it usually takes, in minutes; default: by its boots and polls. */
  minutes?: number;
  /** It runs while the first instance is observed, which is read meanwhile. Its machines boot beside those of the others. */
  isBesideFirst?: true;
  /** What it creates, for the plan: one entry per instance or volume. */
  buys: readonly Purchase[];
  run(session: Session): Promise<void>;
}

export interface Purchase {
  type: 'instance' | 'volume';
  /**
   * `cheapest`: the cheapest available offer. `race`: the offer of `--race`; one unit more than exists is requested.
   * `elsewhere`: the cheapest one in another region, bought only if the cost cap allows it beside all else. `restart`:
   * only if the run restarts the target.
   */
  offer: 'cheapest' | 'race' | 'elsewhere' | 'restart';
  what: string;
}

/** The primary instance, with the last read that showed it ONLINE. */
export interface OnlineInstance {
  instance: Instance;
  shown: JsonObject;
}

/** The primary instance. If there is none, skips the scenario and returns undefined. */
export function requirePrimary(session: Session, scenario: string): Instance | undefined {
  if (session.primary === undefined)
    session.skip([scenario], session.whyNoPrimary ?? 'the run has no instance to do it with');
  return session.primary;
}

/** The primary instance while it is ONLINE; otherwise skips the scenario and returns undefined. */
export function requireOnline(session: Session, scenario: string): OnlineInstance | undefined {
  const instance = requirePrimary(session, scenario);
  if (instance === undefined) return undefined;
  const shown = session.online;
  if (shown !== undefined) return { instance, shown };
  session.skip([scenario], session.whyNotOnline ?? 'the instance is not ONLINE');
  return undefined;
}

/** The reason why the steps of a reclaimed instance are skipped. */
export const RECLAIMED = 'the SPOT instance was reclaimed';

/** Whether a read shows that the platform reclaimed a SPOT instance. */
export function isReclaimed({ placement }: Instance, read: Exchange | undefined): boolean {
  if (placement.offer['instance_type'] !== 'SPOT' || read === undefined) return false;
  const status = stringField(successOf(read), 'status') ?? '';
  return read.answer?.status === 404 || ['DESTROYING', 'DESTROYED'].includes(status);
}
