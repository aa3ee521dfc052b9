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
    const why = units > 0 || obstacles.length === 0 ? '' : `: ${obstacles.join('; ')}`;
    const finding = `There is room for ${units} more${why}.`;
    return units > 0 ? ok(subject, finding) : warning(subject, finding, remedy);
  });
}

/** Allowed difference between this machine's clock and that of a platform. */
const CLOCK_TOLERANCE_MS = 5_000;

/** Compares the clocks. `at`: the platform's, which it read between `begunAt` and `endedAt` of this machine. */
export function diagnoseClock(platform: string, at: number, begunAt: number, endedAt: number): Diagnosis {
  const offMs = Math.max(begunAt - at - 1_000, at - endedAt, 0);
  if (offMs <= CLOCK_TOLERANCE_MS) return ok('clock', `It agrees with the clock of ${platform}.`);
  const finding = `It differs from the clock of ${platform} by ${Math.round(offMs / 1000)} s.`;
  return broken('clock', finding, 'Run NTP on both.');
}
