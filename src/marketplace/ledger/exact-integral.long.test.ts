import fc from 'fast-check';
import { expect, it } from 'vitest';
import { runningDeployment, team } from '../../../test/support/rows/marketplace-rows.ts';
import { aroundMethods } from '../../ports/around-methods.ts';
import { DAY_MS } from '../../ports/clock.ts';
import { assignDiscount, endDiscount } from '../discounts/discounts.ts';
import { priceFor } from '../discounts/price.ts';
import type { DiscountRecord } from '../model/people.ts';
import type { Store, Transaction } from '../model/store.ts';
import { realTimeBalance } from './balance.ts';
import { type Books, openBooks } from './ledger.fixture.ts';
import { postDue } from './post-due.ts';
import { endBilling, startBilling } from './segments.ts';
import { verifyLedger } from './verify-ledger.ts';

/** The state of a deployment from `at` on; `rate` is before discounts; `ended`: no further cost. */
interface Chapter {
  at: number;
  state: 'running' | 'stopped' | 'ended';
  rate: number;
}

/** The sum over all pieces with one price, each rounded down, in integers. Independent of segments and slices. */
function oracle(chapters: readonly Chapter[], discounts: readonly DiscountRecord[], until: number): bigint {
  const percentageAt = (at: number) =>
    discounts
      .filter(({ startsAt, endsAt }) => startsAt <= at && (endsAt === null || endsAt > at))
      .reduce((best, { percentage }) => Math.max(best, percentage), 0);
  const moments = discounts.flatMap(({ startsAt, endsAt }) => [
    startsAt,
    ...(endsAt === null ? [] : [endsAt]),
  ]);
  let total = 0n;
  for (const [index, { at, state, rate }] of chapters.entries()) {
    if (state === 'ended') continue;
    const end = Math.min(until, chapters[index + 1]?.at ?? until);
    const cuts = [...new Set([at, ...moments.filter((moment) => moment > at && moment < end)])].sort(
      (a, b) => a - b,
    );
    const pieces: { from: number; percentage: number }[] = [];
    for (const from of cuts)
      if (pieces.at(-1)?.percentage !== percentageAt(from))
        pieces.push({ from, percentage: percentageAt(from) });
    for (const [piece, { from, percentage }] of pieces.entries()) {
      const ms = BigInt(Math.max(0, (pieces[piece + 1]?.from ?? end) - from));
      const paid = (BigInt(rate) * BigInt(100 - percentage) * 2n + 100n) / 200n;
      total += (paid * ms) / 3_600_000n;
    }
  }
  return total;
}

type Step =
  | { do: 'wait'; ms: number }
  | { do: 'turn'; subject: number; rate: number }
  | { do: 'reprice'; subject: number; rate: number }
  | { do: 'end'; subject: number }
  | { do: 'observe'; subject: number }
  | { do: 'assign'; percentage: number; inMs: number; lastsMs: number | null }
  | { do: 'revoke'; which: number }
  | { do: 'tick'; times: number; crashes: number };

const subject = fc.nat({ max: 1 });
/** An end is final, so it is rare. */
const ends = { weight: 1, arbitrary: fc.record({ do: fc.constant('end' as const), subject }) };
const rate = fc.nat({ max: 40_000_000 });
const waits = (maxMs: number) => ({
  weight: 16,
  arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.nat({ max: maxMs }) }),
});
const others = [
  { weight: 8, arbitrary: fc.record({ do: fc.constant('turn' as const), subject, rate }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('reprice' as const), subject, rate }) },
  ends,
  { weight: 8, arbitrary: fc.record({ do: fc.constant('observe' as const), subject }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('assign' as const),
      percentage: fc.integer({ min: 5, max: 50 }),
      inMs: fc.oneof(fc.constant(0), fc.nat({ max: 8_000_000 })),
      lastsMs: fc.option(fc.integer({ min: 1, max: 20_000_000 })),
    }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('revoke' as const), which: fc.nat({ max: 5 }) }) },
  {
    weight: 16,
    arbitrary: fc.record({
      do: fc.constant('tick' as const),
      times: fc.integer({ min: 1, max: 3 }),
      crashes: fc.nat({ max: 6 }),
    }),
  },
];

class Crash extends Error {}

/** The store of a process that crashes before the `countdown`th write from now, or at the end of its transaction. */
function dying(store: Store, countdown: number): Store {
  let left = countdown;
  const mayDie = () => {
    left -= 1;
    if (left === 0) throw new Crash();
  };
  const watched = (ledger: Transaction['ledger']): Transaction['ledger'] =>
    aroundMethods(ledger, async (call) => {
      mayDie();
      return call();
    });
  return {
    ...store,
    transact: (body) =>
      store.transact(async (tx) => {
        const result = await body({ ...tx, ledger: watched(tx.ledger) });
        mayDie();
        return result;
      }),
  };
}

/** A team with two deployments, and a record of what they should cost. */
class History {
  readonly #books: Books;
  readonly #teamId: string;
  readonly chapters: [Chapter[], Chapter[]] = [[], []];

  constructor(books: Books, teamId: string) {
    this.#books = books;
    this.#teamId = teamId;
  }

  async take(step: Step): Promise<void> {
    const { clock, deps } = this.#books;
    const teamId = this.#teamId;
    if (step.do === 'wait') return clock.advance(step.ms);
    if (step.do === 'turn') return this.#turn(step.subject, step.rate);
    if (step.do === 'reprice') return this.#reprice(step.subject, step.rate);
    if (step.do === 'end') return this.#end(step.subject);
    if (step.do === 'observe') return this.#observe(step.subject);
    if (step.do === 'tick') return this.#tick(step.times, step.crashes);
    if (step.do === 'assign') {
      const startsAt = clock.now() + step.inMs;
      const endsAt = step.lastsMs === null ? null : startsAt + step.lastsMs;
      await assignDiscount(deps, { teamId, percentage: step.percentage, startsAt, endsAt });
      return;
    }
    const discount = (await this.#discounts())[step.which];
    if (discount !== undefined) await endDiscount(deps, discount.id);
  }

  /** Ends the deployments that still run. */
  async finish(): Promise<void> {
    for (const index of [0, 1]) await this.#end(index);
  }

  /** Checks that the balance equals the integral up to now, and that each ended deployment has the right cost. */
  async check(): Promise<void> {
    const { store, clock } = this.#books;
    for (const index of this.chapters.keys()) await this.#observe(index);
    const discounts = await this.#discounts();
    const costs = this.chapters.map((chapters) => oracle(chapters, discounts, clock.now()));
    const balance = await realTimeBalance(store.read, this.#teamId, clock.now());
    expect(BigInt(balance)).toBe(-costs.reduce((sum, cost) => sum + cost, 0n));
    for (const [index, chapters] of this.chapters.entries()) {
      if (chapters.at(-1)?.state !== 'ended') continue;
      const record = await store.read.deployments.byId(this.#id(index));
      expect(BigInt(record?.totalCostMicroUsd ?? -1)).toBe(costs[index]);
    }
  }

  async #turn(index: number, rate: number): Promise<void> {
    const former = this.#of(index).at(-1);
    if (former?.state === 'ended') return;
    await this.#write(index, { state: former?.state === 'running' ? 'stopped' : 'running', rate });
  }

  async #reprice(index: number, rate: number): Promise<void> {
    const former = this.#of(index).at(-1);
    if (former?.state === 'running') await this.#write(index, { state: 'running', rate });
  }

  async #end(index: number): Promise<void> {
    const former = this.#of(index).at(-1);
    if (former !== undefined && former.state !== 'ended')
      await this.#write(index, { state: 'ended', rate: 0 });
  }

  async #write(index: number, { state, rate }: Omit<Chapter, 'at'>): Promise<void> {
    const { store, deps } = this.#books;
    const at = deps.clock.now();
    const id = this.#id(index);
    const teamId = this.#teamId;
    await store.transact(async (tx) => {
      const price = await priceFor(tx, teamId, rate, at);
      if ((await tx.deployments.byId(id)) === null)
        await tx.deployments.insert(runningDeployment({ id, teamId, startedAt: at, createdAt: at }));
      const record = await tx.deployments.byId(id);
      if (record === null) throw new Error('it was inserted');
      await tx.deployments.update({
        ...record,
        status: state === 'ended' ? 'terminated' : state,
        observedAt: at,
        stoppedAt: state === 'ended' ? at : null,
        originalRateMicroUsd: price.originalRateMicroUsd,
        rateMicroUsd: price.rateMicroUsd,
        discountPercentage: price.discountPercentage,
      });
      const named = { subjectKind: 'deployment', subjectId: id } as const;
      if (state === 'ended') await endBilling(deps, tx, 'deployment', id, at);
      else await startBilling(deps, tx, { ...named, teamId, state, price, at });
    });
    this.#of(index).push({ at, state, rate });
  }

  async #observe(index: number): Promise<void> {
    const state = this.#of(index).at(-1)?.state;
    if (state === 'running' || state === 'stopped') await this.#books.observe(this.#id(index));
  }

  /** Several concurrent processes, which may crash. */
  async #tick(times: number, crashes: number): Promise<void> {
    const { store, deps, clock } = this.#books;
    const open = await store.read.ledger.openSegmentsOfTeam(this.#teamId);
    const segments = open.map(({ segment }) => segment);
    const rounds = Array.from({ length: times }, async (_, round) => {
      const mortal = crashes === 0 ? store : dying(store, crashes + round);
      for (const segment of segments) await postDue({ ...deps, store: mortal }, [segment], clock.now());
    });
    for (const outcome of await Promise.allSettled(rounds))
      if (outcome.status === 'rejected' && !(outcome.reason instanceof Crash)) throw outcome.reason;
  }

  #discounts(): Promise<DiscountRecord[]> {
    return this.#books.store.read.discounts.ofTeam(this.#teamId);
  }

  #id(index: number): string {
    return `dep-${this.#teamId}-${index}`;
  }

  #of(index: number): Chapter[] {
    return index === 0 ? this.chapters[0] : this.chapters[1];
  }
}

it.each([
  ['through crashes and repetitions [exact-integral]', { steps: 20, waitMs: 5_000_000, numRuns: 40 }],
  ['over months [month-of-bills]', { steps: 160, waitMs: 2 * DAY_MS, numRuns: 5 }],
])('charges exactly the integral of the price %s', async (_, { steps: minLength, waitMs, numRuns }) => {
  const books = await openBooks();
  const begunAt = books.clock.now();
  const step: fc.Arbitrary<Step> = fc.oneof(waits(waitMs), ...others);
  let histories = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength, maxLength: minLength + 60, size: 'max' }), async (steps) => {
      const teamId = `team-history-${histories++}`;
      await books.store.transact((tx) => tx.teams.insert(team({ id: teamId })));
      const history = new History(books, teamId);
      for (const index of [0, 1]) await history.take({ do: 'turn', subject: index, rate: 1_234_567 });
      for (const step of steps) {
        await history.take(step);
        if (step.do === 'tick') await history.check();
      }
      await history.finish();
      await history.check();
    }),
    { numRuns },
  );
  const { findings, counts } = await verifyLedger(books.store, books.clock.now());
  expect(findings).toEqual([]);
  expect(counts.slices).toBeGreaterThan(200);
  expect(books.clock.now() - begunAt).toBeGreaterThan(numRuns * minLength * (waitMs / 16));
});
