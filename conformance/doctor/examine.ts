import type { Wanted } from '../scenarios/placement.ts';
import { includes, type Level } from '../transcript/records.ts';
import type { JsonObject } from '../wire/json.ts';
import { availabilityFor } from './availability.ts';
import { clockSkew } from './clock-skew.ts';
import type { Diagnosis } from './diagnosis.ts';
import { type ProbeParts, probe } from './probe.ts';
import { offersOf, reach } from './reach.ts';
import { stateFolder } from './state-folder.ts';

export interface Examination extends ProbeParts {
  /** Without a slash at its end. */
  baseUrl: string;
  level: Level;
  wanted: Wanted;
  /** Absent where nothing is to be kept. */
  stateFolder?: string;
  /** Whether a token may be asked for, which is a POST. */
  mayPost: boolean;
  wall: () => number;
}

export interface Examined {
  diagnoses: Diagnosis[];
  configurations: readonly JsonObject[];
  /** Undefined where GET /availability did not answer with a list. */
  availability: readonly JsonObject[] | undefined;
}

/** Looks at all that a run needs, before it begins. It creates nothing. */
export async function examine(parts: Examination): Promise<Examined> {
  const folder = parts.stateFolder === undefined ? [] : [stateFolder(parts.stateFolder)];
  const { diagnoses, configurations, bearer } = await reach(parts, parts);
  const offers = offersOf(configurations);
  const said = [...folder, ...diagnoses];
  if (configurations === undefined) return { diagnoses: said, configurations: [], availability: undefined };
  said.push(...clockSkew(configurations, parts.wall()));
  const isBuying = includes(parts.level, 'lifecycle');
  const available = isBuying ? await probe(parts, `${parts.baseUrl}/availability`, bearer) : undefined;
  const availability = available?.answer?.status === 200 ? offersOf(available) : undefined;
  said.push(...availabilityFor(parts.level, parts.wanted, { configurations: offers, availability }));
  return { diagnoses: said, configurations: offers, availability };
}

export function hasConfigFault(diagnoses: readonly Diagnosis[]): boolean {
  return diagnoses.some(({ state }) => state === 'config');
}
