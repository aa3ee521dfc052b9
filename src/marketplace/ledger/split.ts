import type { Deps } from '../deps.ts';
import type { Discounts } from '../discounts/best-discount.ts';
import { newId } from '../ids.ts';
import type { Transaction } from '../ports/store.ts';
import type { SegmentRecord } from '../records/ledger-records.ts';
import { postSlice } from './post-slice.ts';
import { continued, priceChange } from './price-change.ts';

/**
 * Ends an open segment at each moment before `until` at which its price changes, all of it posted, and opens the next
 * one at the same moment. Returns the one that is open then. A segment of which nothing was posted is priced anew.
 */
export async function splitAtPriceChanges(
  deps: Pick<Deps, 'random'>,
  tx: Pick<Transaction, 'ledger'>,
  segment: SegmentRecord,
  discounts: Discounts,
  until: number,
): Promise<SegmentRecord> {
  const change = priceChange(segment, discounts, until);
  if (change === null) return segment;
  const next = continued(segment, change);
  if (change.at === segment.startedAt) {
    await tx.ledger.updateSegment(next);
    return splitAtPriceChanges(deps, tx, next, discounts, until);
  }
  await closeSegment(deps, tx, segment, change.at);
  const opened = { ...next, id: newId(deps.random, 'seg') };
  await tx.ledger.insertSegment(opened);
  return splitAtPriceChanges(deps, tx, opened, discounts, until);
}

/** Ends a segment at `at` and posts all of it. */
export async function closeSegment(
  deps: Pick<Deps, 'random'>,
  tx: Pick<Transaction, 'ledger'>,
  segment: SegmentRecord,
  at: number,
): Promise<void> {
  const posted = await postSlice(deps, tx, segment, at);
  await tx.ledger.updateSegment({ ...posted, endedAt: at });
}
