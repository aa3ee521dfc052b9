import type { RunSettings } from '../transcript/records.ts';
import type { AutoClock } from './reference/auto-clock.ts';
import type { ReferenceOptions } from './reference/model.ts';
import type { Rules } from './reference/rules.ts';

/** The reference with one sentence of the contract broken. */
export interface Mutant {
  /** Kebab-case: what is broken. */
  id: string;
  /** The broken sentence of the contract, in plain words. */
  breaks: string;
  /** The requirements whose checks must fail. */
  reddens: readonly string[];
  /** The scenarios in which it shows, besides those that these checks need. */
  alsoIn?: readonly string[];
  /** Replaces rules. Must call `hit` each time the deviation takes effect. */
  behave: (rules: Rules, hit: () => void, clock: AutoClock) => Rules;
  options?: Partial<ReferenceOptions>;
  /** How much longer than against the reference a run waits, because of the mutant's own times, in milliseconds. */
  takesMs?: number;
  /** It concerns the pace of the contract's client, so a faster run does not detect it. */
  isSeenAtPaceOnly?: true;
  /** Requirements that also fail in a run that polls faster. */
  alsoReddensWhenQuick?: readonly string[];
  /** Settings, if it is only visible in a different run. */
  run?: Partial<RunSettings>;
  /** The credentials of the run; default: an API key. */
  signsInWith?: 'login' | 'both';
}

/** The reference with a lawful difference; no check may fail. */
export interface Variation {
  id: string;
  /** The part of the contract that allows it. */
  why: string;
  options?: Partial<ReferenceOptions>;
  behave?: (rules: Rules, clock: AutoClock) => Rules;
  /** Settings that differ from the usual run. */
  run?: Partial<RunSettings>;
  signsInWith?: 'login' | 'both';
  /** The recommendations (SHOULD) that it does not follow. */
  warns?: readonly string[];
}
