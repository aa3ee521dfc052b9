import { type Clock, DAY_MS } from '../../ports/clock.ts';
import type { DeploymentReader } from '../model/store.ts';

/** The period over which deployments are counted. */
const WINDOW_MS = 30 * DAY_MS;
const REFRESH_MS = 5 * 60_000;

/** Rank 1 is the most deployed type of the last 30 days. Types that were never deployed share the last rank. */
export type Ranks = (gpuType: string) => number;

/**
 * Counts deployments at intervals. Only the first call waits for a count. If the database does not answer, the ranks stay
 * as they were.
 */
export function createRanks(
  deployments: Pick<DeploymentReader, 'countByGpuType'>,
  clock: Clock,
): () => Promise<Ranks> {
  let ranks: Ranks = () => 1;
  let refreshAt = Number.NEGATIVE_INFINITY;
  let refreshing: Promise<void> | null = null;
  const refresh = async () => {
    const now = clock.now();
    try {
      ranks = toRanks(await deployments.countByGpuType(now - WINDOW_MS));
    } catch {
      // A failed count must not fail the page. Requests that need the database report that it is down.
    }
    refreshAt = now + REFRESH_MS;
    refreshing = null;
  };
  return async () => {
    const isFirst = refreshAt === Number.NEGATIVE_INFINITY;
    if (clock.now() >= refreshAt) refreshing ??= refresh();
    if (isFirst) await refreshing;
    return ranks;
  };
}

function toRanks(counts: readonly { gpuType: string; count: number }[]): Ranks {
  const countOf = new Map(counts.map(({ gpuType, count }) => [gpuType, count]));
  const rankOf = new Map(
    [...countOf].map(([gpuType, count]) => [
      gpuType,
      1 + counts.filter((other) => other.count > count).length,
    ]),
  );
  return (gpuType) => rankOf.get(gpuType) ?? countOf.size + 1;
}
