import type { Deps } from '../deps.ts';
import { bestDiscount, type Discounts, discounted } from '../discounts/price.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import type { SegmentRecord } from '../model/ledger-records.ts';
import type { Reader, Transaction } from '../model/store.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import { priceChange } from './price-change.ts';
import { postSlice, splitAtPriceChanges } from './segments.ts';

/** What an open segment is of. */
type Subject = { kind: 'deployment'; record: DeploymentRecord } | { kind: 'volume'; record: VolumeRecord };

/**
 * Takes what an open segment has cost from the balance, up to the newest slice end that is certain; where the price
 * changed meanwhile, it goes on as another segment from that moment on, and the subject shows the new rates. Doing it
 * twice, or twice at once, is doing it once.
 */
export async function accrue(
  { store, ...deps }: Pick<Deps, 'store' | 'random' | 'options'>,
  segment: SegmentRecord,
  now: number,
): Promise<void> {
  const { sliceMs } = deps.options.billing;
  // Most have nothing due: a look without a lock is cheap.
  const subject = await readSubject(store.read, segment);
  if (subject === null) return;
  if (!isDue(subject, segment, await store.read.discounts.ofTeam(segment.teamId), now, sliceMs)) return;
  await store.transact(async (tx) => {
    const locked = await readSubject(tx, segment);
    const open = await tx.ledger.segmentById(segment.id);
    if (locked === null || open === null || open.endedAt !== null) return;
    const discounts = await tx.discounts.ofTeam(open.teamId);
    const until = certainUntil(locked, now);
    const newest = await splitAtPriceChanges(deps, tx, open, discounts, until);
    await postSlice(deps, tx, newest, lastSliceEnd(until, sliceMs));
    await showRates(tx, locked, newest, discounts, now);
  });
}

async function readSubject(
  read: Pick<Reader, 'deployments' | 'volumes'>,
  { subjectKind, subjectId }: SegmentRecord,
): Promise<Subject | null> {
  if (subjectKind === 'deployment') {
    const record = await read.deployments.byId(subjectId);
    return record && { kind: 'deployment', record };
  }
  const record = await read.volumes.byId(subjectId);
  return record && { kind: 'volume', record };
}

/** Up to when nothing can turn out to have been otherwise: a deployment is billed as far as its provider confirmed it. */
function certainUntil({ kind, record }: Subject, now: number): number {
  if (kind === 'volume') return now;
  if (record.status !== 'running' && record.status !== 'stopped') return Number.NEGATIVE_INFINITY;
  return Math.min(now, record.observedAt ?? Number.NEGATIVE_INFINITY);
}

/** Slices end on a grid, so that whoever posts them means the same ones. */
function lastSliceEnd(until: number, sliceMs: number): number {
  return Math.floor(until / sliceMs) * sliceMs;
}

function isDue(
  subject: Subject,
  segment: SegmentRecord,
  discounts: Discounts,
  now: number,
  sliceMs: number,
): boolean {
  const until = certainUntil(subject, now);
  return (
    lastSliceEnd(until, sliceMs) > segment.postedUntil ||
    priceChange(segment, discounts, until) !== null ||
    percentageToShow(subject, segment, discounts, now) !== subject.record.discountPercentage
  );
}

function percentageToShow(
  { kind }: Subject,
  segment: SegmentRecord,
  discounts: Discounts,
  now: number,
): number {
  return kind === 'deployment' ? bestDiscount(discounts, now) : segment.discountPercentage;
}

/** Writes what a subject costs now where it shows something else. */
async function showRates(
  tx: Pick<Transaction, 'deployments' | 'volumes'>,
  subject: Subject,
  segment: SegmentRecord,
  discounts: Discounts,
  now: number,
): Promise<void> {
  const discountPercentage = percentageToShow(subject, segment, discounts, now);
  if (discountPercentage === subject.record.discountPercentage) return;
  if (subject.kind === 'volume')
    return tx.volumes.update({
      ...subject.record,
      discountPercentage,
      rateMicroUsd: segment.rateMicroUsdPerHour,
      discountEndsAt: null,
      lastPriceUpdateAt: segment.startedAt,
    });
  const { record } = subject;
  const { originalStoppedRateMicroUsd: stopped } = record;
  return tx.deployments.update({
    ...record,
    discountPercentage,
    rateMicroUsd: discounted(record.originalRateMicroUsd, discountPercentage),
    stoppedRateMicroUsd: stopped === null ? null : discounted(stopped, discountPercentage),
  });
}
