import type { Deps } from '../deps.ts';
import type { Price } from '../discounts/price.ts';
import type { SegmentRecord, SubjectKind } from '../model/ledger-records.ts';
import { newIdAt } from '../model/names.ts';
import type { Transaction } from '../model/store.ts';
import { closeSegment, splitAtPriceChanges } from './segments.ts';

type BillingTransaction = Pick<Transaction, 'ledger' | 'discounts'>;

/**
 * From `at` on the subject costs this price: its open segment ends there, all of it posted, and a new one begins at the
 * same moment. Where more than that was posted, "there" is where posting got to, so that segments follow on each other.
 * The subject's row was read by id in this transaction.
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
    /** What the provider asks for it. */
    providerRateMicroUsd?: number | null;
    at: number;
  },
): Promise<SegmentRecord> {
  const startedAt = await endSegments(deps, tx, subjectKind, subjectId, at);
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
    // The next round finds out when its first slice is due.
    nextPostAt: startedAt,
  };
  await tx.ledger.insertSegment(segment);
  return segment;
}

/**
 * From `at` on the subject costs nothing: its open segment ends there, all of it posted. Does nothing without one.
 * Returns when it ended: later than `at` where more was posted, by a process whose clock is ahead.
 */
export async function endBilling(
  deps: Pick<Deps, 'random'>,
  tx: BillingTransaction,
  subjectKind: SubjectKind,
  subjectId: string,
  at: number,
): Promise<number> {
  return endSegments(deps, tx, subjectKind, subjectId, at);
}

/** Ends what is open, and returns the first moment from `at` on that no segment covers. */
async function endSegments(
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

/** The open segment, locked. One that others ended in the meantime is followed by the next. */
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
