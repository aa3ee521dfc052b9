import { nextTurn } from '../../ports/clock.ts';
import { LeaseLost } from '../../work/lease.ts';
import { JOB_ROUND_MS } from '../../work/lease-time.ts';
import type { LeasedJob } from '../../work/leased-job.ts';
import type { Deps } from '../deps.ts';
import { leasedJob } from '../model/fenced-store.ts';
import type { SliceEnd } from '../model/ledger-store.ts';
import { type Store, StoreUnavailable } from '../model/store.ts';
import { toUsage } from './segments.ts';

const EVERY_MS = 60_000;
/** How many slices one read returns. */
const PAGE = 500;
/** How many lines one transaction writes. Other writers of a SQLite file then wait only some milliseconds. */
const AT_ONCE = 50;

type RollUpDeps = Pick<Deps, 'store' | 'clock' | 'random' | 'log' | 'options'>;

/**
 * Replaces a segment's slices of one day with one line, long after the day is over. The database refuses the line if
 * any sum would change.
 */
export class RollUp {
  readonly #deps: RollUpDeps;
  readonly #job: LeasedJob<Store>;

  constructor(deps: RollUpDeps) {
    this.#deps = deps;
    this.#job = leasedJob(deps, {
      name: 'roll-up',
      everyMs: EVERY_MS,
      work: (store) => this.#work({ ...this.#deps, store }),
    });
  }

  start(): void {
    this.#job.start();
  }

  stop(): Promise<void> {
    return this.#job.stop();
  }

  /** Runs one round if this process holds the lease. It never rejects. */
  run(): Promise<void> {
    return this.#job.run();
  }

  async #work(deps: RollUpDeps): Promise<void> {
    const { store, clock, options } = deps;
    const { afterMs, periodMs } = options.billing.rollUp;
    const startedAt = clock.now();
    const until = Math.floor((startedAt - afterMs) / periodMs) * periodMs;
    let after: SliceEnd | undefined;
    // Segments that failed in this round. They are skipped, because their later days must wait for the failed one.
    const failed = new Set<string>();
    while (clock.now() - startedAt < JOB_ROUND_MS) {
      const page = await store.read.ledger.toRollUp({
        until,
        periodMs,
        limit: PAGE,
        after,
      });
      for (const { startsAt, segmentIds } of daysOf(page, periodMs)) {
        const wanted = segmentIds.filter((id) => !failed.has(id));
        for (let from = 0; from < wanted.length; from += AT_ONCE)
          await this.#attempt(deps, startsAt, wanted.slice(from, from + AT_ONCE), failed);
      }
      if (page.length < PAGE) return;
      after = page.at(-1);
    }
  }

  /** Rolls up these segments. If that fails, retries each half, so that one failure does not block the others. */
  async #attempt(
    deps: RollUpDeps,
    startsAt: number,
    segmentIds: readonly string[],
    failed: Set<string>,
  ): Promise<void> {
    // Lets other work run between two transactions.
    await nextTurn();
    try {
      await rollUp(deps, startsAt, segmentIds);
    } catch (err) {
      if (err instanceof StoreUnavailable || err instanceof LeaseLost) throw err;
      const [segment = ''] = segmentIds;
      if (segmentIds.length > 1) {
        const half = Math.ceil(segmentIds.length / 2);
        for (const part of [segmentIds.slice(0, half), segmentIds.slice(half)])
          await this.#attempt(deps, startsAt, part, failed);
        return;
      }
      failed.add(segment);
      deps.log.error(
        { err, segment },
        'the slices of a day could not be rolled up and are kept unchanged; see `berth marketplace verify-ledger`',
      );
    }
  }
}

/** The days of these slices, the oldest first, each with the segments that have a slice in it. */
function daysOf(
  slices: readonly SliceEnd[],
  periodMs: number,
): { startsAt: number; segmentIds: readonly string[] }[] {
  const days = new Map<number, Set<string>>();
  for (const { segmentId, sliceEnd } of slices) {
    const startsAt = Math.floor((sliceEnd - 1) / periodMs) * periodMs;
    days.set(startsAt, (days.get(startsAt) ?? new Set()).add(segmentId));
  }
  return [...days].map(([startsAt, ids]) => ({ startsAt, segmentIds: [...ids] }));
}

/** Rolls up the day that begins at `startsAt`. Skips slices that another process has rolled up meanwhile. */
async function rollUp(
  { store, ...deps }: Pick<Deps, 'store' | 'random' | 'options'>,
  startsAt: number,
  segmentIds: readonly string[],
): Promise<void> {
  const endsAt = startsAt + deps.options.billing.rollUp.periodMs;
  await store.transact(async (tx) => {
    const sums = await tx.ledger.sumSlices({ segmentIds, startsAt, endsAt });
    await tx.ledger.rollUp(
      sums.map(({ segment, from, until, slices, amountMicroUsd }) => ({
        segmentId: segment.id,
        startsAt,
        endsAt,
        slices,
        usage: toUsage(deps, segment, from, until, amountMicroUsd),
      })),
    );
  });
}
