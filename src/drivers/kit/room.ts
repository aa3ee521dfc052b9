import type { Catalog, Offer } from '../../orchestrator/catalog/catalog.ts';
import type { FreeUnits } from '../../orchestrator/model/inventory.ts';

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

/** How many hosts are named. */
const NAMED = 8;

/** Lists why each host has no room for a machine: the first hosts by name, and how many others. */
export function listObstacles(found: readonly { host: string; reason: string }[]): string[] {
  const named = found.slice(0, NAMED).map(({ host, reason }) => `${host}: ${reason}`);
  const others = found.length - named.length;
  return others === 0 ? named : [...named, `${others} other hosts have no room either`];
}

/** A count of no units with its causes. `empty`: those that would remain without Berth's machines; none: it would fit. */
export function withObstacles(
  count: FreeUnits,
  obstacles: readonly string[],
  empty: readonly string[],
): FreeUnits {
  if (count.units > 0) return count;
  return { ...count, obstacles, ...(empty.length > 0 && { misfits: empty }) };
}
