import type { JsonObject } from '../wire/json.ts';
import type { Instance, Session } from './session.ts';

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
