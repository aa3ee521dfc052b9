import type { FreeUnits, Inventory } from '../../orchestrator/model/inventory.ts';
import { broken, type Diagnosis } from '../../ports/diagnosis.ts';

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

/** Reports each offer that no host could have, even without Berth's machines. */
export function diagnoseOfferSizes(inventory: Inventory): Diagnosis[] {
  if (inventory.answer === 'unknown') return [];
  return inventory.free.flatMap(({ offerId, datacenter, misfits }) =>
    misfits === undefined
      ? []
      : broken(
          `offer ${offerId} in ${datacenter}`,
          `it fits on no host, even if Berth had no machine there: ${misfits.join('; ')}`,
          'Make the offer smaller, give a host what it lacks, or remove the region from the offer. Until then every create is refused.',
        ),
  );
}
