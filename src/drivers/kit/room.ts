import type { Catalog, Offer } from '../../orchestrator/catalog/catalog.ts';

/** Why Berth places nothing on a host. */
export const CORDONED = 'an operator has cordoned it in Berth';

/** A resource that a machine needs, and how much of it a host has left. */
export interface Limit {
  what: string;
  left: number;
  needed: number;
}

/** How many machines the limits allow. */
export function unitsWithin(limits: readonly Limit[]): number {
  const rooms = limits.flatMap(({ left, needed }) => (needed > 0 ? left / needed : []));
  return Math.max(0, Math.floor(Math.min(...rooms) + 1e-9));
}

/** Why the limits allow no machine. Undefined if they do. */
export function shortageIn(limits: readonly Limit[]): string | undefined {
  const short = limits.find(({ left, needed }) => needed > 0 && left + 1e-9 < needed);
  if (short === undefined) return undefined;
  const left = Math.max(0, Math.floor(short.left * 10) / 10);
  return `it has ${left} free ${short.what}, but ${short.needed} are needed`;
}

/** The datacenters where the offer is sold. */
export function datacentersOf({ regions }: Catalog, { placements }: Offer): Set<string> {
  return new Set(placements.map(({ region }) => regions.get(region)?.datacenter ?? region));
}
