import { toDollars, toTimestamp } from '../contract/values.ts';
import type { Deps } from '../deps.ts';
import type { Discounts } from '../discounts/price.ts';
import type { SegmentRecord } from '../model/ledger-records.ts';
import { newId } from '../model/names.ts';
import type { Transaction } from '../model/store.ts';
import { continued, owedOf, priceChange } from './price-change.ts';

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

/**
 * Takes what a segment costs up to `until` from the team's balance, and returns the segment as it is then. It must have
 * been read by id in this transaction. What was posted is never posted again; a slice that comes to less than a
 * micro-USD moves `postedUntil` and books nothing.
 */
export async function postSlice(
  { random }: Pick<Deps, 'random'>,
  tx: Pick<Transaction, 'ledger'>,
  segment: SegmentRecord,
  until: number,
): Promise<SegmentRecord> {
  if (until <= segment.postedUntil) return segment;
  const amountMicroUsd = owedOf(segment, until);
  const posted = {
    ...segment,
    postedUntil: until,
    postedMicroUsd: segment.postedMicroUsd + amountMicroUsd,
  };
  await tx.ledger.updateSegment(posted);
  if (amountMicroUsd === 0) return posted;
  const { id: segmentId, teamId, subjectKind, subjectId } = segment;
  const transactionId = newId(random, 'txn');
  await tx.ledger.book(
    { id: transactionId, kind: 'usage', teamId, at: until, memo: memoOf(segment, until), reference: null },
    [
      { account: `team:${teamId}`, amountMicroUsd: -amountMicroUsd },
      { account: subjectKind === 'deployment' ? 'revenue:compute' : 'revenue:storage', amountMicroUsd },
    ],
  );
  await tx.ledger.insertSlice({ segmentId, sliceEnd: until, amountMicroUsd, transactionId });
  await tx.ledger.recordCost(subjectKind, subjectId, amountMicroUsd, until);
  return posted;
}

function memoOf(
  { subjectId, state, postedUntil, rateMicroUsdPerHour }: SegmentRecord,
  until: number,
): string {
  const span = `${toTimestamp(postedUntil)} to ${toTimestamp(until)}`;
  return `${subjectId} ${state} from ${span} at ${toDollars(rateMicroUsdPerHour)} per hour`;
}
