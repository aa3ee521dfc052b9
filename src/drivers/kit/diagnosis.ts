import type { Inventory } from '../../orchestrator/model/inventory.ts';
import { broken, type Diagnosis, ok, warning } from '../../ports/diagnosis.ts';

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
  const subject = `clock of ${platform}`;
  if (offMs <= CLOCK_TOLERANCE_MS) return ok(subject, 'It agrees with the clock of Berth.');
  const finding = `It differs from the clock of Berth by ${Math.round(offMs / 1000)} s.`;
  return broken(subject, finding, 'Run NTP on both.');
}

/** Each value once, without those that are not set. */
export const unique = <T>(values: readonly (T | undefined)[]): T[] => [
  ...new Set(values.filter((value) => value !== undefined)),
];

/** Runs a check. A sentence means ok; a failed request means broken, with that remedy. */
export async function examine(
  subject: string,
  remedy: string,
  check: () => Promise<string | Diagnosis>,
): Promise<Diagnosis> {
  try {
    const found = await check();
    return typeof found === 'string' ? ok(subject, found) : found;
  } catch (error) {
    return broken(subject, sentence((error as Error).message), remedy);
  }
}

/** A message as a sentence. */
export function sentence(message: string): string {
  const text = `${message.charAt(0).toUpperCase()}${message.slice(1)}`;
  return text.endsWith('.') ? text : `${text}.`;
}
