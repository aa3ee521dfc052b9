import { type CordonRecord, concerns } from '../../../src/orchestrator/model/cordon.ts';
import type { FreeUnits } from '../../../src/orchestrator/model/inventory.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import { hold } from '../../kernel/violation.ts';
import { catalog } from '../catalog.ts';
import type { Machine } from '../platform/platform.ts';
import type { Sold } from '../replicas/store.ts';

/** A count of free units that a server got. Times are virtual. */
interface Count {
  process: ServerProcess;
  askedAt: number;
  arrivedAt: number;
  /** Units that claims may take of each placement: what was told to be free, and what machines held then. */
  units: ReadonlyMap<string, number>;
}

/** A server that got a count has kept it after so long, unless its store failed or it stood still. */
const KEPT_AFTER_MS = 10_000;
/** For so long a count may be gone by: the time that Berth documents, and the age that the last sale had then. */
const HOLDS_MS = 11 * 60_000;
const MOST_COUNTS = 200;

/** What the platforms told the servers to be free, and which of it a server may still go by. */
export class Counts {
  readonly #counts: Count[] = [];
  readonly #failures: { process: ServerProcess; at: number }[] = [];

  add(
    times: Pick<Count, 'process' | 'askedAt' | 'arrivedAt'>,
    free: readonly FreeUnits[],
    held: readonly Machine[],
  ): void {
    const units = new Map<string, number>();
    for (const entry of free) {
      const region = regionOf(entry.datacenter);
      const machines = held.filter(
        ({ spec }) => spec.offerId === entry.offerId && spec.datacenter === entry.datacenter,
      );
      units.set(`${entry.offerId} ${region}`, entry.units + machines.length);
    }
    this.#counts.unshift({ ...times, units });
    this.#counts.splice(MOST_COUNTS);
  }

  /** A call of the process to its store failed: what it did with a count is not known. */
  storeFailed(process: ServerProcess, at: number): void {
    this.#failures.push({ process, at });
  }

  /** The most units that claims may take by any count that the process may go by. */
  most(
    process: ServerProcess,
    place: string,
    { now, callTimeoutMs, isClockTrue }: { now: number; callTimeoutMs: number; isClockTrue: boolean },
  ): number {
    let most = 0;
    for (const count of this.#counts) {
      const units = count.units.get(place);
      if (count.process !== process || units === undefined) continue;
      if (!isClockTrue || now - count.askedAt <= HOLDS_MS) most = Math.max(most, units);
      if (this.#isKept(count, now, callTimeoutMs)) break;
    }
    return most;
  }

  #isKept({ process, askedAt, arrivedAt }: Count, now: number, callTimeoutMs: number): boolean {
    const keptAt = arrivedAt + KEPT_AFTER_MS;
    const isInTime = arrivedAt - askedAt < callTimeoutMs - 1_000;
    const hasFailed = this.#failures.some(
      (failure) => failure.process === process && failure.at >= askedAt && failure.at <= keptAt,
    );
    return now >= keptAt && isInTime && process.pausedUntil < askedAt && !hasFailed;
  }
}

function regionOf(datacenter: string): string {
  return [...catalog.regions.values()].find((region) => region.datacenter === datacenter)?.token ?? '';
}

/** I33: no unit is sold beyond what the platform counted. */
export function isWithinCount({ offerId, region, claimed }: Sold, most: number, server: string): void {
  hold(
    'I33',
    claimed <= most,
    () => `${server} sold ${claimed} units of ${offerId} in ${region}, and ${most} were counted`,
  );
}

/** I33: at rest an offer is sold where the catalog and the platform have a unit, and nowhere else. */
export function isSoldByCount(
  { offerId, region }: Pick<Sold, 'offerId' | 'region'>,
  freeUnits: number,
  offered: readonly string[],
): void {
  const isRight = offered.includes(region) === freeUnits > 0;
  hold('I33', isRight, () => `${offerId} in ${region} has ${freeUnits} free units at rest`);
}

/** I34: nothing is sold where an operator's cordon stands. */
export function isNotCordoned(
  { offerId, region }: Pick<Sold, 'offerId' | 'region'>,
  platform: string,
  standing: readonly CordonRecord[],
  server: string,
): void {
  const on = standing.find((cordon) => concerns(cordon, { offer: offerId, region, platform }));
  hold(
    'I34',
    on === undefined,
    () =>
      `${server} sold ${offerId} in ${region}, where the cordon ${on?.id} on ${on?.kind} ${on?.name} stands`,
  );
}
