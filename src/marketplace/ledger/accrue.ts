import { withOverrides } from '../../ports/with-overrides.ts';
import type { Deps } from '../deps.ts';
import { bestDiscount, type Discounts, discounted } from '../discounts/price.ts';
import type { Posting, SegmentRecord } from '../model/ledger-records.ts';
import type { BilledSegment, Transaction } from '../model/store.ts';
import { priceChange } from './price-change.ts';
import { splitAtPriceChanges, toPostings } from './segments.ts';
import { nextLookAt, sliceEnd } from './slices.ts';

/** {@link accrueTogether} of one segment. */
export async function accrue(
  deps: Pick<Deps, 'store' | 'random' | 'options'>,
  segment: SegmentRecord,
  now: number,
): Promise<void> {
  await accrueTogether(deps, [segment], now);
}

/**
 * Takes the slices of open segments that are due from the balances, as far as they are certain, all in one transaction,
 * and schedules the next ones; where a price changed meanwhile, a segment goes on as another one from that moment on,
 * and the subject shows the new rates. Doing it twice, or twice at once, is doing it once.
 */
export async function accrueTogether(
  { store, ...deps }: Pick<Deps, 'store' | 'random' | 'options'>,
  segments: readonly SegmentRecord[],
  now: number,
): Promise<void> {
  const { billing } = deps.options;
  await store.transact(async (tx) => {
    const postings: Posting[] = [];
    // Everything is posted at the end: that locks the teams in their order, whichever segments changed their price.
    const ledger = withOverrides(tx.ledger, { post: async (posted) => void postings.push(...posted) });
    const locked = await tx.ledger.lockBilled(segments);
    const teamIds = [...new Set(locked.map(({ segment }) => segment.teamId))];
    const discountsOf = Map.groupBy(await tx.discounts.ofTeams(teamIds), ({ teamId }) => teamId);
    for (const billed of locked) {
      const discounts = discountsOf.get(billed.segment.teamId) ?? [];
      const until = certainUntil(billed, now);
      const newest = await splitAtPriceChanges(deps, { ledger }, billed.segment, discounts, until);
      const slices = toPostings(deps, newest, sliceEnd(billing, newest, until, now));
      const segment = slices.at(-1)?.segment ?? newest;
      const nextPostAt = nextLookAt(billing, segment, until, now);
      postings.push(...slices.slice(0, -1), {
        segment: { ...segment, nextPostAt },
        usage: slices.at(-1)?.usage ?? null,
      });
      await showRates(tx, billed, segment, discounts, now);
    }
    await tx.ledger.post(postings);
  });
}

/** Up to when nothing can turn out to have been otherwise: a deployment is billed as far as its provider confirmed it. */
function certainUntil({ segment, status, confirmedUntil }: BilledSegment, now: number): number {
  if (segment.subjectKind === 'volume') return now;
  if (status !== 'running' && status !== 'stopped') return Number.NEGATIVE_INFINITY;
  return Math.min(now, confirmedUntil ?? Number.NEGATIVE_INFINITY);
}

/** Whether the price of a segment has changed, by what is certain, or its subject shows another one than now holds. */
export function hasChanged(billed: BilledSegment, discounts: Discounts, now: number): boolean {
  const { segment, discountPercentage } = billed;
  return (
    priceChange(segment, discounts, certainUntil(billed, now)) !== null ||
    percentageToShow(segment, discounts, now) !== discountPercentage
  );
}

function percentageToShow(segment: SegmentRecord, discounts: Discounts, now: number): number {
  return segment.subjectKind === 'deployment' ? bestDiscount(discounts, now) : segment.discountPercentage;
}

/** Writes what a subject costs now where it shows something else. */
async function showRates(
  tx: Pick<Transaction, 'deployments' | 'volumes'>,
  { discountPercentage: shown }: BilledSegment,
  segment: SegmentRecord,
  discounts: Discounts,
  now: number,
): Promise<void> {
  const discountPercentage = percentageToShow(segment, discounts, now);
  if (discountPercentage === shown) return;
  if (segment.subjectKind === 'volume') {
    const record = await tx.volumes.byId(segment.subjectId);
    if (record !== null)
      await tx.volumes.update({
        ...record,
        discountPercentage,
        rateMicroUsd: segment.rateMicroUsdPerHour,
        discountEndsAt: null,
        lastPriceUpdateAt: segment.startedAt,
      });
    return;
  }
  const record = await tx.deployments.byId(segment.subjectId);
  if (record === null) return;
  const { originalStoppedRateMicroUsd: stopped } = record;
  await tx.deployments.update({
    ...record,
    discountPercentage,
    rateMicroUsd: discounted(record.originalRateMicroUsd, discountPercentage),
    stoppedRateMicroUsd: stopped === null ? null : discounted(stopped, discountPercentage),
  });
}
