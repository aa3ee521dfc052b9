import { nextTurn } from '../../ports/clock.ts';
import { LeaseLost } from '../../work/lease.ts';
import type { LeasedJob } from '../../work/leased-job.ts';
import type { Deps } from '../deps.ts';
import { leasedJob } from '../model/fenced-store.ts';
import { type SliceEnd, type Store, StoreUnavailable } from '../model/store.ts';
import { toUsage } from './segments.ts';

const EVERY_MS = 60_000;
/** How many slices are looked at in one read. */
const PAGE = 500;
/** How many lines are written in one transaction: what waits for a file's database waits some milliseconds only. */
const AT_ONCE = 50;
/** A round ends long before its lease does; the next one goes on. */
const BUSY_MS = 20_000;

type RollUpDeps = Pick<Deps, 'store' | 'clock' | 'random' | 'log' | 'options'>;

/**
 * Keeps the ledger small: what a segment took on one day, in many slices, becomes one line of that day, once the day is
 * long over. The lines of many segments are one transaction; the database refuses it if any sum would change.
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
    if (this.#deps.options.billing.rollUp.afterMs !== null) this.#job.start();
  }

  stop(): Promise<void> {
    return this.#job.stop();
  }

  /** One round, where this process has the lease; it never rejects. */
  run(): Promise<void> {
    return this.#job.run();
  }

  async #work(deps: RollUpDeps): Promise<void> {
    const { store, clock, options } = deps;
    const { afterMs, periodMs } = options.billing.rollUp;
    if (afterMs === null) return;
    const startedAt = clock.now();
    const until = Math.floor((startedAt - afterMs) / periodMs) * periodMs;
    let after: SliceEnd | undefined;
    // What fails once fails with each of its slices: a later day waits for the one before it.
    const failed = new Set<string>();
    while (clock.now() - startedAt < BUSY_MS) {
      const page = await store.read.ledger.toRollUp({
        until,
        periodMs,
        limit: PAGE,
        ...(after !== undefined && { after }),
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

  /** Where it fails, each half by itself, so that a failure of one does not stop the others. */
  async #attempt(
    deps: RollUpDeps,
    startsAt: number,
    segmentIds: readonly string[],
    failed: Set<string>,
  ): Promise<void> {
    // What waits meanwhile is done between two transactions.
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
        'the slices of a day could not be rolled up and stay as they are; see `berth marketplace verify-ledger`',
      );
    }
  }
}

/** The days in which these slices are, the oldest first, each with the segments that have one of them. */
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

/** Rolls up the day that begins at `startsAt`; passes over what another process has rolled up meanwhile. */
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
