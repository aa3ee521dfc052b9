import { nextTurn } from '../../ports/clock.ts';
import { LeaseLost } from '../../work/lease.ts';
import type { LeasedJob } from '../../work/leased-job.ts';
import type { Deps } from '../deps.ts';
import { leasedJob } from '../model/fenced-store.ts';
import { type SliceEnd, type Store, StoreUnavailable } from '../model/store.ts';
import { toUsage } from './segments.ts';

const EVERY_MS = 60_000;
const PAGE = 50;
/** A round ends long before its lease does; the next one goes on. */
const MOST_A_ROUND = 500;

type RollUpDeps = Pick<Deps, 'store' | 'clock' | 'random' | 'log' | 'options'>;

/**
 * Keeps the ledger small: what a segment took on one day, in many slices, becomes one line of that day, once the day is
 * long over. Each line is a transaction of its own; the database refuses one by which any sum would change.
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
    const until = Math.floor((clock.now() - afterMs) / periodMs) * periodMs;
    let after: SliceEnd | undefined;
    // What fails once fails with each of its slices: a later day waits for the one before it.
    const failed = new Set<string>();
    for (let done = 0; done < MOST_A_ROUND; ) {
      const page = await store.read.ledger.toRollUp({
        until,
        periodMs,
        limit: PAGE,
        ...(after !== undefined && { after }),
      });
      for (const slice of page)
        if (!failed.has(slice.segmentId)) done += (await this.#attempt(deps, slice, failed)) ? 1 : 0;
      if (page.length < PAGE) return;
      after = page.at(-1);
    }
  }

  /** Whether it was rolled up. What fails is passed over, so that it does not stop the others. */
  async #attempt(deps: RollUpDeps, slice: SliceEnd, failed: Set<string>): Promise<boolean> {
    // What waits meanwhile is done between two transactions.
    await nextTurn();
    try {
      return await rollUp(deps, slice);
    } catch (err) {
      if (err instanceof StoreUnavailable || err instanceof LeaseLost) throw err;
      failed.add(slice.segmentId);
      deps.log.error(
        { err, segment: slice.segmentId },
        'the slices of a day could not be rolled up and stay as they are; see `berth marketplace verify-ledger`',
      );
      return false;
    }
  }
}

/** Rolls up the period that a slice is in. Whether there was anything: another one may have been first. */
async function rollUp(
  { store, ...deps }: Pick<Deps, 'store' | 'random' | 'options'>,
  { segmentId, sliceEnd }: SliceEnd,
): Promise<boolean> {
  const { periodMs } = deps.options.billing.rollUp;
  const startsAt = Math.floor((sliceEnd - 1) / periodMs) * periodMs;
  const endsAt = startsAt + periodMs;
  return store.transact(async (tx) => {
    const segment = await tx.ledger.segmentById(segmentId);
    const sum = await tx.ledger.sumOfSlices(segmentId, startsAt, endsAt);
    if (segment === null || sum === null) return false;
    const { from, until, slices, amountMicroUsd } = sum;
    const usage = toUsage(deps, segment, from, until, amountMicroUsd);
    await tx.ledger.rollUp({ segmentId, startsAt, endsAt, slices, usage });
    return true;
  });
}
