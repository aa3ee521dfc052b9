import { toTimestamp } from '../contract/values.ts';
import type { Deps } from '../deps.ts';
import { newId } from '../ids.ts';
import type { Transaction } from '../ports/store.ts';
import type { SegmentRecord } from '../records/ledger-records.ts';
import { owedOf } from './cost.ts';
import { toDollars } from './dollars.ts';

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
