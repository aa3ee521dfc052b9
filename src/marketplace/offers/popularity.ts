import { type Clock, DAY_MS } from '../../ports/clock.ts';
import type { DeploymentReader } from '../model/store.ts';

/** The period over which deployments are counted. */
const WINDOW_MS = 30 * DAY_MS;
const REFRESH_MS = 5 * 60_000;

/** Rank 1 is the most deployed type of the last 30 days. Types that were never deployed share the last rank. */
export type Ranks = (gpuType: string) => number;

/** Counts deployments at intervals. If the database does not answer, the ranks stay as they were. */
export class Popularity {
  readonly #deployments: Pick<DeploymentReader, 'countByGpuType'>;
  readonly #clock: Clock;
  #ranks: Ranks = () => 1;
  #refreshAt = Number.NEGATIVE_INFINITY;
  #refreshing: Promise<void> | null = null;

  constructor(deployments: Pick<DeploymentReader, 'countByGpuType'>, clock: Clock) {
    this.#deployments = deployments;
    this.#clock = clock;
  }

  /** Waits for the first count only. Later counts run in the background. */
  async ranks(): Promise<Ranks> {
    const isFirst = this.#refreshAt === Number.NEGATIVE_INFINITY;
    if (this.#clock.now() >= this.#refreshAt)
      this.#refreshing ??= this.#refresh().finally(() => {
        this.#refreshing = null;
      });
    if (isFirst) await this.#refreshing;
    return this.#ranks;
  }

  async #refresh(): Promise<void> {
    const now = this.#clock.now();
    try {
      this.#ranks = toRanks(await this.#deployments.countByGpuType(now - WINDOW_MS));
    } catch {
      // A failed count must not fail the page. Requests that need the database report that it is down.
    }
    this.#refreshAt = now + REFRESH_MS;
  }
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
