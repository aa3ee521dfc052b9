import { toDollars } from '../../contract/values.ts';
import { DAY_MS } from '../../ports/clock.ts';
import { toTimestamp } from '../contract/values.ts';
import type { Deps } from '../deps.ts';
import type { Discounts, Price } from '../discounts/price.ts';
import type { Posting, SegmentRecord, SubjectKind } from '../model/ledger-records.ts';
import { newIdAt } from '../model/names.ts';
import type { Transaction } from '../model/store.ts';
import { continued, owedOf, priceChange } from './price-change.ts';

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

/**
 * Ends the segment at each price change before `until` and opens the next one. Returns the last one, which is open. A
 * segment with nothing posted before the change gets the new price instead.
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
  const opened = { ...next, id: newIdAt(deps.random, 'seg', change.at) };
  await tx.ledger.insertSegment(opened);
  return splitAtPriceChanges(deps, tx, opened, discounts, until);
}

/** Posts a segment in full and ends it at `at`. */
async function closeSegment(
  deps: Pick<Deps, 'random'>,
  tx: Pick<Transaction, 'ledger'>,
  segment: SegmentRecord,
  at: number,
): Promise<void> {
  const posted = await postUntil(deps, tx, segment, at);
  await tx.ledger.updateSegment({ ...posted, endedAt: at });
}

/** Charges one slice per UTC day. `segment` was read by id in this transaction. Returns it updated. */
export async function postUntil(
  deps: Pick<Deps, 'random'>,
  tx: Pick<Transaction, 'ledger'>,
  segment: SegmentRecord,
  until: number,
): Promise<SegmentRecord> {
  const postings = toPostings(deps, segment, until);
  const last = postings.at(-1);
  if (last === undefined) return segment;
  await tx.ledger.post(postings);
  return last.segment;
}

/** The postings in order. Posted time is never posted again. A cost below one micro-USD only moves `postedUntil`. */
export function toPostings(deps: Pick<Deps, 'random'>, segment: SegmentRecord, until: number): Posting[] {
  let current = segment;
  return endsOfSlices(segment.postedUntil, until).map((end) => {
    const posting = toPosting(deps, current, end);
    current = posting.segment;
    return posting;
  });
}

/** The ends of the slices up to `until`. Each slice lies in one UTC day, so that daily amounts are exact. */
export function endsOfSlices(from: number, until: number): number[] {
  const ends: number[] = [];
  for (let midnight = (Math.floor(from / DAY_MS) + 1) * DAY_MS; midnight < until; midnight += DAY_MS)
    ends.push(midnight);
  return until > from ? [...ends, until] : [];
}

function toPosting({ random }: Pick<Deps, 'random'>, segment: SegmentRecord, until: number): Posting {
  const { teamId, subjectKind, subjectId, state, rateMicroUsdPerHour: rate, postedUntil: from } = segment;
  const amountMicroUsd = owedOf(segment, until);
  const posted = {
    ...segment,
    postedUntil: until,
    postedMicroUsd: segment.postedMicroUsd + amountMicroUsd,
  };
  if (amountMicroUsd === 0) return { segment: posted, usage: null };
  const span = `${toTimestamp(from)} to ${toTimestamp(until)}`;
  const transaction = {
    id: newIdAt(random, 'txn', until),
    kind: 'usage',
    teamId,
    at: until,
    memo: `${subjectId} ${state} from ${span} at ${toDollars(rate)} per hour`,
    reference: null,
  } as const;
  const revenue = subjectKind === 'deployment' ? 'revenue:compute' : 'revenue:storage';
  const entries = [
    { account: `team:${teamId}`, amountMicroUsd: -amountMicroUsd },
    { account: revenue, amountMicroUsd },
  ] as const;
  return { segment: posted, usage: { transaction, entries, amountMicroUsd } };
}
