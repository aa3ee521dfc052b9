import { type JsonObject, objectsField, stringsField } from '../../text/json.ts';
import type { Draws } from '../../transcript/draws.ts';
import { jsonOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';

/** Only this many regions are tested, drawn if there are more. */
const MOST_REGIONS = 32;
/** A region that no provider has. */
export const UNKNOWN_REGION = 'berth-conf-nowhere';

/** The offers that a run read last, and what it draws. */
export interface Known {
  configurations: readonly JsonObject[];
  availability: readonly JsonObject[];
  draws: Draws;
}

/** The offers in an answer of /configurations or /availability. */
export function offersOf(exchange: Exchange): JsonObject[] {
  return objectsField(jsonOf(exchange), 'configurations');
}

/**
 * Regions of the offers: of more than MOST_REGIONS some that are drawn. If something is available, one of them is a
 * region where it is: the lists of the others may be empty, and an empty list shows nothing.
 */
export function knownRegions({ availability, configurations, draws }: Known): string[] {
  const [selling, named] = [availability, configurations].map(
    (offers) => new Set(offers.flatMap((offer) => stringsField(offer, 'regions'))),
  ) as [Set<string>, Set<string>];
  const all = [...new Set([...selling, ...named])];
  if (all.length <= MOST_REGIONS) return all;
  const drawn = draws.shuffled('regions', all);
  const first = drawn.findIndex((region) => selling.has(region));
  return first < MOST_REGIONS
    ? drawn.slice(0, MOST_REGIONS)
    : [...drawn.slice(0, MOST_REGIONS - 1), ...drawn.slice(first, first + 1)];
}

/** Another region than this one. */
export function otherRegion(known: Known, own: string): string {
  return knownRegions(known).find((region) => region !== own) ?? UNKNOWN_REGION;
}

/** The reads that are sent once for each region. */
const REGION_READS = {
  'catalog/of-region': { list: '/availability', most: MOST_REGIONS },
  'list/of-region': { list: '/instances', most: 8 },
} as const;

type RegionRead = keyof typeof REGION_READS;

/** The paths of the reads of that step. */
export function regionPaths(step: RegionRead, known: Known): string[] {
  const { list, most } = REGION_READS[step];
  return knownRegions(known)
    .slice(0, most)
    .map((region) => pathIn(list, region));
}

/** The path of a list in a region. */
export function pathIn(list: '/availability' | '/instances', region: string): string {
  return `${list}?region=${encodeURIComponent(region)}`;
}
