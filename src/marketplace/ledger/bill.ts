import type { Deps } from '../deps.ts';
import type { Price } from '../discounts/price.ts';
import type { SegmentRecord, SubjectKind } from '../model/ledger-records.ts';
import { newIdAt } from '../model/names.ts';
import type { Transaction } from '../model/store.ts';
import { closeSegment, splitAtPriceChanges } from './segments.ts';

type BillingTransaction = Pick<Transaction, 'ledger' | 'discounts'>;

/**
 * Ends the open segment and begins a new one at the later of `at` and the last posting. The subject's row was read by
 * id in this transaction.
 */
export async function startBilling(
  deps: Pick<Deps, 'random'>,
  tx: BillingTransaction,
  {
    subjectKind,
    subjectId,
    teamId,
    state,
    price,
    providerRateMicroUsd = null,
    at,
  }: Pick<SegmentRecord, 'subjectKind' | 'subjectId' | 'teamId' | 'state'> & {
    price: Price;
    providerRateMicroUsd?: number | null;
    at: number;
  },
): Promise<SegmentRecord> {
  const startedAt = await endBilling(deps, tx, subjectKind, subjectId, at);
  const segment: SegmentRecord = {
    id: newIdAt(deps.random, 'seg', startedAt),
    subjectKind,
    subjectId,
    teamId,
    state,
    rateMicroUsdPerHour: price.rateMicroUsd,
    originalRateMicroUsdPerHour: price.originalRateMicroUsd,
    providerRateMicroUsdPerHour: providerRateMicroUsd,
    discountPercentage: price.discountPercentage,
    startedAt,
    endedAt: null,
    postedUntil: startedAt,
    postedMicroUsd: 0,
  };
  await tx.ledger.insertSegment(segment);
  return segment;
}

/**
 * Stops billing the subject: posts and ends its open segment. Returns the first moment from `at` on that no segment
 * covers. It is later than `at` if a process with a fast clock has already posted beyond `at`.
 */
export async function endBilling(
  deps: Pick<Deps, 'random'>,
  tx: BillingTransaction,
  subjectKind: SubjectKind,
  subjectId: string,
  at: number,
): Promise<number> {
  const open = await lockOpenSegment(tx, subjectKind, subjectId);
  if (open === null) {
    const segments = await tx.ledger.segmentsOf(subjectKind, subjectId);
    return Math.max(at, ...segments.map(({ endedAt }) => endedAt ?? at));
  }
  const end = Math.max(at, open.postedUntil);
  const discounts = await tx.discounts.ofTeam(open.teamId);
  await closeSegment(deps, tx, await splitAtPriceChanges(deps, tx, open, discounts, end), end);
  return end;
}

/** Locks and returns the open segment, or its successor if another process ended it meanwhile. */
async function lockOpenSegment(
  tx: BillingTransaction,
  subjectKind: SubjectKind,
  subjectId: string,
): Promise<SegmentRecord | null> {
  for (;;) {
    const open = await tx.ledger.openSegmentOf(subjectKind, subjectId);
    if (open === null) return null;
    const locked = await tx.ledger.segmentById(open.id);
    if (locked !== null && locked.endedAt === null) return locked;
  }
}
