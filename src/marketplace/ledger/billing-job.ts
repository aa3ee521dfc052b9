import { nextTurn } from '../../ports/clock.ts';
import { LeaseLost } from '../../work/lease.ts';
import { JOB_ROUND_MS } from '../../work/lease-time.ts';
import type { LeasedJob } from '../../work/leased-job.ts';
import type { Deps } from '../deps.ts';
import { leasedJob } from '../model/fenced-store.ts';
import type { PageEnd, SegmentRecord } from '../model/ledger-records.ts';
import { type Store, StoreUnavailable } from '../model/store.ts';
import { assessVolumeDiscounts } from './assess-volume.ts';
import { hasChanged, postDue } from './post-due.ts';
import { watchTeam } from './watch-team.ts';
import { type Enforcement, ZeroBalance } from './zero-balance.ts';

const EVERY_MS = 30_000;
/** How many teams one page has, and how many segments one transaction posts. */
const AT_ONCE = 200;
/** A round ends when the store is unavailable this many times in a row. */
const UNAVAILABLE_IN_A_ROW = 3;

type BillingDeps = Pick<Deps, 'store' | 'clock' | 'random' | 'log' | 'options'>;

/**
 * The billing job charges slices, watches balances, and ends deployments and volumes of teams without balance. A round
 * reads only due rows. Costs do not depend on when it runs: a segment is posted in full where it ends.
 */
export class BillingJob {
  readonly #deps: BillingDeps;
  readonly #job: LeasedJob<Store>;
  readonly #zeroBalance: ZeroBalance;
  #unavailable = 0;

  constructor({ enforce, ...deps }: BillingDeps & { enforce: Enforcement }) {
    this.#deps = deps;
    this.#zeroBalance = new ZeroBalance(deps, enforce);
    this.#job = leasedJob(deps, {
      name: 'billing',
      everyMs: EVERY_MS,
      work: (store) => this.#work({ ...this.#deps, store }),
    });
  }

  start(): void {
    this.#job.start();
  }

  /** Waits for the current round, and for the stops and deletions that it began. */
  async stop(): Promise<void> {
    await this.#job.stop();
    await this.#zeroBalance.settled();
  }

  /** Runs one round if this process holds the lease. It never rejects. */
  run(): Promise<void> {
    return this.#job.run();
  }

  async #work(deps: BillingDeps): Promise<void> {
    const now = deps.clock.now();
    this.#unavailable = 0;
    const { teams, ledger } = deps.store.read;
    await this.#attempt({ job: 'discounts' }, () => assessVolumeDiscounts(deps, now));
    // A check may leave its team due for the next round.
    const checked = new Set<string>();
    for await (const due of this.#pages((after) => teams.due({ now, after, limit: AT_ONCE }), toSelf))
      for (const { id } of due) {
        if (checked.has(id)) continue;
        checked.add(id);
        await this.#attempt({ team: id }, () => this.#check(deps, id, now));
      }
    const { sliceMs } = deps.options.billing;
    const readDue = (after?: PageEnd) => ledger.dueSegments({ now, sliceMs, after, limit: AT_ONCE });
    const segments = this.#pages(readDue, toDue);
    for await (const due of segments) await this.#postDue(deps, due, now);
  }

  /** Reads the next page when the last one is done. Failed items are not read again in this round. */
  async *#pages<T>(
    readPage: (after: PageEnd | undefined) => Promise<T[]>,
    endOf: (item: T) => PageEnd,
  ): AsyncIterable<T[]> {
    const { clock } = this.#deps;
    const startedAt = clock.now();
    let after: PageEnd | undefined;
    while (clock.now() - startedAt < JOB_ROUND_MS) {
      const page = await readPage(after);
      const last = page.at(-1);
      if (last === undefined) return;
      yield page;
      if (page.length < AT_ONCE) return;
      after = endOf(last);
    }
  }

  /** Bills changed segments first, so that the reading uses the current prices. */
  async #check(deps: BillingDeps, teamId: string, now: number): Promise<void> {
    const { read } = deps.store;
    const open = await read.ledger.billedSegmentsOfTeam(teamId);
    const discounts = open.length === 0 ? [] : await read.discounts.ofTeam(teamId);
    const changed = open.filter((billed) => hasChanged(billed, discounts, now)).map(({ segment }) => segment);
    for (let from = 0; from < changed.length; from += AT_ONCE)
      await this.#postDue(deps, changed.slice(from, from + AT_ONCE), now);
    const watch = await watchTeam(deps, teamId, now);
    if (watch !== null && watch.exhaustedAt !== null)
      await this.#zeroBalance.check(deps.store, teamId, watch.exhaustedAt, now);
  }

  /** Bills the segments together; if that fails, one by one, so that one failure does not block the others. */
  async #postDue(deps: BillingDeps, segments: readonly SegmentRecord[], now: number): Promise<void> {
    // Lets other work run between two transactions.
    await nextTurn();
    try {
      await postDue(deps, segments, now);
    } catch (err) {
      if (err instanceof LeaseLost) throw err;
      deps.log.warn(
        { err, segments: segments.length },
        'slices could not be billed together; each is billed separately',
      );
      for (const segment of segments) {
        const { subjectKind, subjectId, teamId } = segment;
        await this.#attempt({ [subjectKind]: subjectId, team: teamId }, () => postDue(deps, [segment], now));
      }
    }
  }

  /** Logs a failure, so that it does not stop the other items. */
  async #attempt(fields: object, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.#unavailable = 0;
    } catch (err) {
      if (err instanceof LeaseLost) throw err;
      if (err instanceof StoreUnavailable && ++this.#unavailable >= UNAVAILABLE_IN_A_ROW) throw err;
      this.#deps.log.error({ err, ...fields }, 'a part of the billing round failed; it will be retried');
    }
  }
}

const toSelf = (due: PageEnd): PageEnd => due;
const toDue = ({ id, postedUntil }: SegmentRecord): PageEnd => ({ at: postedUntil, id });
