import type { RunSettings } from '../transcript/records.ts';
import type { AutoClock } from './reference/auto-clock.ts';
import type { ReferenceOptions } from './reference/model.ts';
import type { Rules } from './reference/rules.ts';

/** The reference with one sentence of O: broken. */
export interface Mutant {
  /** Kebab-case: what is broken. */
  id: string;
  /** The sentence of O: that it breaks, in plain words. */
  breaks: string;
  /** The requirements whose checks have to see it. */
  reddens: readonly string[];
  /** The rules with one replaced; `hit` is called each time that the deviation really takes effect. */
  behave: (rules: Rules, hit: () => void, clock: AutoClock) => Rules;
  options?: Partial<ReferenceOptions>;
  /** Where it shows only in a run that is not the usual one. */
  run?: Partial<RunSettings>;
  /** With what the run gets in; an API key when absent. */
  signsInWith?: 'login' | 'both';
}

/** The reference as another orchestrator might lawfully be; no check may object to it. */
export interface Variation {
  id: string;
  /** What in O: allows it. */
  why: string;
  options?: Partial<ReferenceOptions>;
  behave?: (rules: Rules, clock: AutoClock) => Rules;
  /** Where the run has to be another one than the usual. */
  run?: Partial<RunSettings>;
  signsInWith?: 'login' | 'both';
  /** The recommendations that it lawfully does not follow. */
  warns?: readonly string[];
}
