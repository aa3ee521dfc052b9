import { nextTurn } from '../../ports/clock.ts';
import { LeaseLost } from '../../work/lease.ts';
import type { LeasedJob } from '../../work/leased-job.ts';
import type { Deps } from '../deps.ts';
import { assessVolumeDiscounts } from '../discounts/assess-volume.ts';
import { leasedJob } from '../model/fenced-store.ts';
import type { SegmentRecord } from '../model/ledger-records.ts';
import { type Store, StoreUnavailable } from '../model/store.ts';
import { accrue, accrueTogether, isDue, rememberDiscounts } from './accrue.ts';
import { isQuiet } from './balance-watch.ts';
import { watchTeam } from './watch-team.ts';
import { type Enforcement, ZeroBalance } from './zero-balance.ts';

const EVERY_MS = 30_000;
const PAGE = 500;
/** How many slices are posted in one transaction. */
const AT_ONCE = 200;

type AccrualDeps = Pick<Deps, 'store' | 'clock' | 'random' | 'log' | 'options'>;

/**
 * The billing job: takes what is used from the balances, slice by slice, watches how long they last, and ends what
 * runs without one. Costs are exact whether it runs or not: what ends is posted in full by whoever ends it.
 */
export class Accrual {
  readonly #deps: AccrualDeps;
  readonly #job: LeasedJob<Store>;
  readonly #zeroBalance: ZeroBalance;
  /** Teams whose balance is watched although nothing of theirs may run any more. */
  #watched = new Set<string>();

  constructor({ enforce, ...deps }: AccrualDeps & { enforce: Enforcement }) {
    this.#deps = deps;
    this.#zeroBalance = new ZeroBalance(deps, enforce);
    this.#job = leasedJob(deps, {
      name: 'billing',
      everyMs: EVERY_MS,
      work: (store, isNewHolder) => this.#work({ ...this.#deps, store }, isNewHolder),
    });
  }

  start(): void {
    this.#job.start();
  }

  /** Waits for the round that runs, and for the deployments that it ends. */
  async stop(): Promise<void> {
    await this.#job.stop();
    await this.#zeroBalance.settled();
  }

  /** One round, where this process has the lease; it never rejects. */
  run(): Promise<void> {
    return this.#job.run();
  }

  async #work(deps: AccrualDeps, isNewHolder: boolean): Promise<void> {
    const { store, clock } = deps;
    const now = clock.now();
    await this.#attempt({ job: 'discounts' }, () => assessVolumeDiscounts(deps, now));
    if (isNewHolder) {
      const teams = await store.read.teams.list();
      this.#watched = new Set(teams.filter(({ watch }) => !isQuiet(watch)).map(({ id }) => id));
    }
    for (const teamId of await this.#accrueAll(deps, now)) this.#watched.add(teamId);
    for (const teamId of [...this.#watched])
      await this.#attempt({ team: teamId }, () => this.#watch(deps, teamId, now));
  }

  /** Accrues every open segment, and returns whose they are. */
  async #accrueAll(deps: AccrualDeps, now: number): Promise<Set<string>> {
    const { read } = deps.store;
    const teams = new Set<string>();
    const discountsOf = rememberDiscounts(read);
    let afterId: string | undefined;
    for (;;) {
      const page = await read.ledger.billedSegments({
        limit: PAGE,
        ...(afterId !== undefined && { afterId }),
      });
      const due: SegmentRecord[] = [];
      for (const billed of page) {
        const { teamId } = billed.segment;
        teams.add(teamId);
        if (isDue(billed, await discountsOf(teamId), now, deps.options.billing.sliceMs))
          due.push(billed.segment);
      }
      for (let from = 0; from < due.length; from += AT_ONCE)
        await this.#accrue(deps, due.slice(from, from + AT_ONCE), now);
      if (page.length < PAGE) return teams;
      afterId = page.at(-1)?.segment.id;
    }
  }

  /** In one transaction; where that fails, one by one, so that a failure of one does not stop the others. */
  async #accrue(deps: AccrualDeps, segments: readonly SegmentRecord[], now: number): Promise<void> {
    // What waits meanwhile is done between two transactions.
    await nextTurn();
    try {
      await accrueTogether(deps, segments, now);
    } catch (err) {
      if (err instanceof StoreUnavailable || err instanceof LeaseLost) throw err;
      deps.log.warn(
        { err, segments: segments.length },
        'slices could not be billed together; each is billed by itself',
      );
      for (const segment of segments) {
        const { subjectKind, subjectId, teamId } = segment;
        await this.#attempt({ [subjectKind]: subjectId, team: teamId }, () => accrue(deps, segment, now));
      }
    }
  }

  async #watch(deps: AccrualDeps, teamId: string, now: number): Promise<void> {
    const watch = await watchTeam(deps, teamId, now);
    const hasSegments = ((await deps.store.read.teams.load(teamId))?.openSegments ?? 0) > 0;
    if ((watch === null || isQuiet(watch)) && !hasSegments) this.#watched.delete(teamId);
    if (watch !== null && watch.exhaustedAt !== null)
      await this.#zeroBalance.check(deps.store, teamId, watch.exhaustedAt, now);
  }

  /** A failure of one does not stop the others. */
  async #attempt(fields: object, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (err) {
      if (err instanceof StoreUnavailable || err instanceof LeaseLost) throw err;
      this.#deps.log.error({ err, ...fields }, 'a part of the billing round failed; it will be retried');
    }
  }
}
