import type { Wanted } from '../scenarios/placement.ts';
import type { JsonObject } from '../text/json.ts';
import { includes, type Level } from '../transcript/records.ts';
import { availabilityFor } from './availability.ts';
import { type Diagnosis, note, ok } from './diagnosis.ts';
import { stateFolder } from './machine.ts';
import { type Probe, type ProbeParts, probe } from './probe.ts';
import { offersOf, reach } from './reach.ts';

export interface Examination extends ProbeParts {
  /** Without a trailing slash. */
  baseUrl: string;
  level: Level;
  wanted: Wanted;
  stateFolder: string;
  wall: () => number;
}

export interface Examined {
  diagnoses: Diagnosis[];
  configurations: readonly JsonObject[];
  /** Undefined if the answer of GET /availability was not a list. */
  availability: readonly JsonObject[] | undefined;
}

/** Checks everything that a run needs before it begins. Creates nothing. */
export async function examine(parts: Examination): Promise<Examined> {
  const { diagnoses, configurations, bearer } = await reach(parts, parts.baseUrl);
  const offers = offersOf(configurations);
  const said = [stateFolder(parts.stateFolder), ...diagnoses];
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

const TOLERATED_MS = 30_000;

/** Compares this machine's clock with the `Date` of an answer. No verdict depends on either. */
function clockSkew({ answer }: Probe, wallMs: number): Diagnosis[] {
  const dateMs = Date.parse(answer?.headers['date'] ?? '');
  if (!Number.isFinite(dateMs)) return [];
  const skewMs = dateMs - wallMs;
  if (Math.abs(skewMs) <= TOLERATED_MS) return [ok('Clock', 'it agrees with that of the target')];
  const seconds = Math.round(Math.abs(skewMs) / 1000);
  const said = `the target's clock is ${seconds} s ${skewMs > 0 ? 'ahead of' : 'behind'} the one of this machine`;
  return [
    note('Clock', said, 'synchronise whichever is wrong: timestamps that are read side by side will mislead'),
  ];
}
