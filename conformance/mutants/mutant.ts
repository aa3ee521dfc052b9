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
  /** Replaces rules; must call `hit` each time that the deviation takes effect. */
  behave: (rules: Rules, hit: () => void, clock: AutoClock) => Rules;
  options?: Partial<ReferenceOptions>;
  /** How much longer it keeps a run waiting by its own times than the reference, in milliseconds. */
  takesMs?: number;
  /** It breaks something about the pace of the contract's client: a faster run does not see it. */
  isSeenAtPaceOnly?: true;
  /** Settings, where it is only visible in a different run. */
  run?: Partial<RunSettings>;
  /** The credentials of the run; default: an API key. */
  signsInWith?: 'login' | 'both';
}

/** The reference with a lawful difference; no check may fail. */
export interface Variation {
  id: string;
  /** What in the contract allows it. */
  why: string;
  options?: Partial<ReferenceOptions>;
  behave?: (rules: Rules, clock: AutoClock) => Rules;
  /** Settings that differ from the usual run. */
  run?: Partial<RunSettings>;
  signsInWith?: 'login' | 'both';
  /** The recommendations (SHOULD) that it does not follow. */
  warns?: readonly string[];
}
