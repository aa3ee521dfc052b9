import type { FreeUnits, Inventory } from '../../orchestrator/model/inventory.ts';
import { broken, type Diagnosis, ok, warning } from '../../ports/diagnosis.ts';

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

/** Reports the room for each offer. An offer that no host could have, even without Berth's machines, is broken. */
export function diagnoseFreeUnits(inventory: Inventory, remedy: string): Diagnosis[] {
  if (inventory.answer === 'unknown') return [];
  return inventory.free.map(({ offerId, datacenter, units, obstacles = [], misfits }) => {
    if (misfits !== undefined)
      return broken(
        `offer ${offerId} in ${datacenter}`,
        `it fits on no host, even if Berth had no machine there: ${misfits.join('; ')}`,
        'Make the offer smaller, give a host what it lacks, or remove the region from the offer. Until then every create is refused.',
      );
    const subject = `room for ${offerId} in ${datacenter}`;
    const finding = `There is room for ${units} more${units > 0 ? '' : `: ${obstacles.join('; ')}`}.`;
    return units > 0 ? ok(subject, finding) : warning(subject, finding, remedy);
  });
}
