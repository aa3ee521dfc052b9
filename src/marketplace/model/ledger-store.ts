import type { DeploymentStatus } from '../contract/deployment.ts';
import type {
  LedgerEntryRecord,
  LedgerTransactionRecord,
  LossRecord,
  MailRecord,
  PageEnd,
  Posting,
  SegmentRecord,
  SliceRecord,
  SubjectKind,
} from './ledger-records.ts';

/** A segment and its deployment as of the same moment: a concurrently posted slice is in both or in neither. */
export interface OpenDeploymentSegment {
  segment: SegmentRecord;
  /** The time up to which the provider has confirmed the deployment. */
  confirmedUntil: number | null;
  totalCostMicroUsd: number;
}

/** An open segment, and the values that determine up to when it is billed. */
export interface BilledSegment {
  segment: SegmentRecord;
  /** Null: the subject is not a deployment. */
  status: DeploymentStatus | null;
  /** The time up to which the provider has confirmed the deployment. */
  confirmedUntil: number | null;
  /** The discount stored with the subject. */
  discountPercentage: number;
}

/** What a segment was billed for, with the provider of its subject. */
export interface UsedSegment
  extends Pick<
    SegmentRecord,
    'id' | 'subjectKind' | 'rateMicroUsdPerHour' | 'providerRateMicroUsdPerHour' | 'startedAt' | 'endedAt'
  > {
  providerId: string;
  /** The time up to which the provider has confirmed the deployment. */
  confirmedUntil: number | null;
}

/** A period after `from` and up to `to`, so that a slice that ends at midnight belongs to the day before. */
export interface Period {
  from: number;
  to: number;
}

/** What was used of one resource at one rate, within a period. */
export interface UsageRow extends Pick<SegmentRecord, 'subjectKind' | 'subjectId' | 'state'> {
  name: string;
  providerId: string;
  rateMicroUsdPerHour: number;
  /** When the use began and ended within the period, as far as it was charged. */
  from: number;
  to: number;
  amountMicroUsd: number;
}

/** The sums of a period for one team, provider and kind of resource. */
export interface UsageSum {
  teamId: string;
  providerId: string;
  subjectKind: SubjectKind;
  ms: number;
  amountMicroUsd: number;
  /** At the provider's prices, where they are known, and the time without a known price. */
  providerMicroUsd: number;
  unpricedMs: number;
}

/** What statements are made of. */
export interface StatementReader {
  usageRows(teamId: string, period: Period): Promise<UsageRow[]>;
  /** From the segments and slices alone. */
  usageSums(period: Period): Promise<UsageSum[]>;
  /** From the entries alone: the sum of each account on each UTC day, by the day's start. */
  entriesByDay(
    period: Period,
  ): Promise<{ account: string; isUsage: boolean; day: number; amountMicroUsd: number }[]>;
  /** The sum of each account, or of one, up to and including `at`. */
  balancesAt(at: number, account?: string): Promise<{ account: string; amountMicroUsd: number }[]>;
  /** Payments, grants and adjustments of a team, the oldest first. */
  bookingsOf(
    teamId: string,
    period: Period,
  ): Promise<(LedgerTransactionRecord & { amountMicroUsd: number })[]>;
  /** The time of the first charge; null: there is none. */
  firstUsageAt(): Promise<number | null>;
}

export interface LedgerReader extends StatementReader {
  segmentById(id: string): Promise<SegmentRecord | null>;
  /** Ordered by `startedAt`. */
  segmentsOf(kind: SubjectKind, subjectId: string): Promise<SegmentRecord[]>;
  openSegmentOf(kind: SubjectKind, subjectId: string): Promise<SegmentRecord | null>;
  /** Takes no lock. Each has the time until which the provider has confirmed its deployment; null for volumes. */
  openSegmentsOfTeam(teamId: string): Promise<{ segment: SegmentRecord; confirmedUntil: number | null }[]>;
  /** The most that the team's open segments cost and have not charged by `now`: all confirmed, without discounts. */
  mostAccrued(teamId: string, now: number): Promise<number>;
  /** The open segments of these deployments, without locks. Each has the deployment's cost as of the same moment. */
  openSegmentsOfDeployments(ids: readonly string[]): Promise<OpenDeploymentSegment[]>;
  /** All open segments after `afterId`, in the order of their ids. */
  openSegments(page: { afterId?: string; limit: number }): Promise<SegmentRecord[]>;
  /** The team's open segments with the values that determine their billing, without locks. */
  billedSegmentsOfTeam(teamId: string): Promise<BilledSegment[]>;
  /** Open segments that are certain beyond the end of a slice that is not posted. Takes no lock. */
  dueSegments(of: {
    now: number;
    sliceMs: number;
    after?: PageEnd | undefined;
    limit: number;
  }): Promise<SegmentRecord[]>;
  slicesOf(segmentId: string): Promise<SliceRecord[]>;
  /** The cost of a segment on each UTC day, by the day's start, from its slices. */
  daysOf(segmentId: string): Promise<{ day: number; amountMicroUsd: number }[]>;
  /** The newest first. */
  transactionsOf(teamId: string, limit: number): Promise<LedgerTransactionRecord[]>;
  byReference(reference: string): Promise<LedgerTransactionRecord | null>;
  /** Payments, grants and adjustments of teams, but no usage; the newest first. */
  bookings(page: {
    after?: PageEnd | undefined;
    limit: number;
  }): Promise<(LedgerTransactionRecord & { amountMicroUsd: number })[]>;
  /** The sum of each account, from the entries alone. */
  balances(): Promise<{ account: string; amountMicroUsd: number }[]>;
  /** Transactions without the two entries of their kind, and usage that does not match one slice. */
  malformed(limit: number): Promise<{ id: string; isBalanced: boolean }[]>;
  /** The number of rows of each kind, to verify that {@link malformed} covered them all. */
  countRows(): Promise<{ transactions: number; entries: number; usages: number; uses: number }>;
  /** The amount charged to a team for usage from `from`, exclusive, to `to`. A slice counts at its end. */
  usageOf(teamId: string, from: number, to: number): Promise<number>;
  /**
   * A page of the open segments by id, or of those that ended after `since` by the time of their end. `teamId`: only those
   * of this team.
   */
  used(page: {
    since: number;
    isOpen: boolean;
    teamId?: string | undefined;
    after?: UsedSegment | undefined;
    limit: number;
  }): Promise<UsedSegment[]>;
  /** The sum of the rates of the open segments, for each provider that has any. */
  burnByProvider(): Promise<{ providerId: string; microUsdPerHour: number }[]>;
  /** All segments after `afterId`, in the order of their ids, each with the sums of its slices. */
  auditSegments(page: { afterId?: string; limit: number }): Promise<
    {
      segment: SegmentRecord;
      slices: number;
      slicesMicroUsd: number;
      lastSliceEnd: number | null;
      /** The end of the first slice at which the sum differs from the segment's cost up to then; null: none. */
      wrongAt: number | null;
    }[]
  >;
  /**
   * All billed subjects in the order of their ids, with the period that segments must cover. `until` is null if billing
   * has not ended, and equal to `from` if there was no cost.
   */
  auditSubjects(page: { afterId?: string; limit: number }): Promise<
    {
      kind: SubjectKind;
      id: string;
      teamId: string;
      from: number;
      until: number | null;
      totalCostMicroUsd: number;
    }[]
  >;
}
export interface LedgerWriter extends LedgerReader {
  insertSegment(record: SegmentRecord): Promise<void>;
  updateSegment(record: SegmentRecord): Promise<void>;
  /**
   * Writes how far segments are posted, books each amount above zero, and adds it to the subjects.
   * @throws {Duplicate} for a second slice of a segment with the same end
   */
  post(postings: readonly Posting[]): Promise<void>;
  /**
   * The entries must add up to zero. Updates the stored balance.
   * @throws {Duplicate} for a reference that is already booked
   */
  book(
    transaction: LedgerTransactionRecord,
    entries: readonly Omit<LedgerEntryRecord, 'transactionId'>[],
  ): Promise<void>;
  /** These open segments with their subjects as of now, locked until the end of the transaction. */
  lockBilled(segments: readonly SegmentRecord[]): Promise<BilledSegment[]>;
}

export type MailState = 'waiting' | 'sent' | 'given_up';

export interface MailReader {
  /** Mails to send by `now`, the oldest first. */
  due(now: number, limit: number): Promise<MailRecord[]>;
  /** The newest first. `waiting`: neither sent nor given up. */
  list(filter: {
    to?: string | undefined;
    state?: MailState | undefined;
    after?: PageEnd | undefined;
    limit: number;
  }): Promise<MailRecord[]>;
  /** Mails neither sent nor given up: when the oldest was written, and when the next attempt is due. */
  waiting(): Promise<{ count: number; oldestCreatedAt: number | null; nextDueAt: number | null }>;
  countGivenUpSince(time: number): Promise<number>;
}
export interface MailWriter extends MailReader {
  byId(id: string): Promise<MailRecord | null>;
  /** Does nothing if a mail with the same `dedupeKey` exists. */
  insert(record: MailRecord): Promise<void>;
  update(record: MailRecord): Promise<void>;
  /** Deletes the oldest mails that are sent or given up and were written before then. Returns their number. */
  deleteEnded(before: number, limit: number): Promise<number>;
}

export interface LossReader {
  bySubject(subjectId: string): Promise<LossRecord | null>;
  /** The number of losses at a provider that are not held. */
  countSince(providerId: string, time: number): Promise<number>;
  /** The oldest first. */
  held(providerId: string): Promise<LossRecord[]>;
  /** The number of held losses, for each provider that has any. */
  countHeld(): Promise<{ providerId: string; count: number }[]>;
  /** The number of a provider's active deployments with an instance, plus its volumes that are not deleted. */
  countLive(providerId: string): Promise<number>;
  /** Providers with at least one loss. */
  providers(): Promise<string[]>;
}
export interface LossWriter extends LossReader {
  /** Serialises the counting of losses at this provider. Must come first in a transaction, before any row is locked. */
  lock(providerId: string): Promise<void>;
  put(record: LossRecord): Promise<void>;
  /** Removes the loss if it is held. */
  release(subjectId: string): Promise<void>;
}
