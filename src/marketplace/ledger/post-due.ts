import type { Deps } from '../deps.ts';
import { bestDiscount, type Discounts, discounted } from '../discounts/price.ts';
import type { Posting, SegmentRecord } from '../model/ledger-records.ts';
import type { BilledSegment } from '../model/ledger-store.ts';
import type { Transaction } from '../model/store.ts';
import { priceChange } from './price-change.ts';
import { splitAtPriceChanges, toPostings } from './segments.ts';

/**
 * Charges the slices that are certain, in one transaction. They end at a midnight of UTC, unless slices are shorter than a
 * day. A changed price ends a segment and begins another. Repeated and concurrent calls charge nothing twice.
 */
export async function postDue(
  { store, ...deps }: Pick<Deps, 'store' | 'random' | 'options'>,
  segments: readonly SegmentRecord[],
  now: number,
): Promise<void> {
  const { sliceMs } = deps.options.billing;
  await store.transact(async (tx) => {
    const postings: Posting[] = [];
    // All postings are written at the end. That locks the teams in order, whichever segments changed their price.
    const ledger: Transaction['ledger'] = {
      ...tx.ledger,
      post: async (posted) => void postings.push(...posted),
    };
    const locked = await tx.ledger.lockBilled(segments);
    const teamIds = [...new Set(locked.map(({ segment }) => segment.teamId))];
    const discountsOf = Map.groupBy(await tx.discounts.ofTeams(teamIds), ({ teamId }) => teamId);
    for (const billed of locked) {
      const discounts = discountsOf.get(billed.segment.teamId) ?? [];
      const until = certainUntil(billed, now);
      const newest = await splitAtPriceChanges(deps, { ledger }, billed.segment, discounts, until);
      postings.push(...toPostings(deps, newest, Math.floor(until / sliceMs) * sliceMs));
      await showRates(tx, billed, newest, discounts, now);
    }
    await tx.ledger.post(postings);
  });
}

/** The time up to which billing is certain. A deployment is billed only as far as its provider has confirmed it. */
function certainUntil({ segment, status, confirmedUntil }: BilledSegment, now: number): number {
  if (segment.subjectKind === 'volume') return now;
  if (status !== 'running' && status !== 'stopped') return Number.NEGATIVE_INFINITY;
  return Math.min(now, confirmedUntil ?? Number.NEGATIVE_INFINITY);
}

/** Whether the price of a segment changed within the certain time, or its subject shows an outdated discount. */
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

/** Updates the rates that the subject shows, if they are outdated. */
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
