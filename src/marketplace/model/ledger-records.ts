export type SubjectKind = 'deployment' | 'volume';

/** A period in which one subject has one rate. The segments of a subject are contiguous and do not overlap. */
export interface SegmentRecord {
  id: string;
  subjectKind: SubjectKind;
  /** The `id` of the deployment or volume. */
  subjectId: string;
  teamId: string;
  state: 'running' | 'stopped' | 'stored';
  /** The team's rate, after discounts. */
  rateMicroUsdPerHour: number;
  originalRateMicroUsdPerHour: number;
  /** The provider's rate, for the margin; null: unknown. */
  providerRateMicroUsdPerHour: number | null;
  discountPercentage: number;
  startedAt: number;
  /** Null: open. A subject has at most one open segment. */
  endedAt: number | null;
  /** The end of the posted part; `startedAt` where nothing was posted. A period that cost nothing has no slice. */
  postedUntil: number;
  /** The sum of the slices: always floor(rate × (postedUntil − startedAt)). */
  postedMicroUsd: number;
}

/** A part of a segment that was charged to the balance. Unique per segment and end. */
export interface SliceRecord {
  segmentId: string;
  sliceEnd: number;
  amountMicroUsd: number;
  transactionId: string;
}

export type LedgerTransactionKind = 'usage' | 'top_up' | 'grant' | 'adjustment';

/** The entries of a transaction add up to zero. It is never changed or deleted. */
export interface LedgerTransactionRecord {
  id: string;
  kind: LedgerTransactionKind;
  teamId: string;
  at: number;
  memo: string;
  /** Unique where present, so the same event is booked only once. */
  reference: string | null;
}

/** `team:<id>` holds the amount that a team can still spend. The others are the operator's accounts. */
export type LedgerAccount = `team:${string}` | 'revenue:compute' | 'revenue:storage' | 'cash' | 'promotion';

export interface LedgerEntryRecord {
  transactionId: string;
  account: LedgerAccount;
  /** Positive: a team has more to spend, `revenue:*` earned more. Payments make `cash` and `promotion` negative. */
  amountMicroUsd: number;
}

/** The ledger transaction for one period of a segment: one entry for the team, one for the revenue account. */
export interface Usage {
  transaction: LedgerTransactionRecord;
  entries: readonly Omit<LedgerEntryRecord, 'transactionId'>[];
  amountMicroUsd: number;
}

/** A segment after a further posting, and the amount posted; null: less than a micro-USD. */
export interface Posting {
  segment: SegmentRecord;
  usage: Usage | null;
}

/** A team's balance at one moment, and the rate at which it decreases. */
export interface BalanceReading {
  at: number;
  /** The stored balance less the accrued cost that is not posted yet. */
  balanceMicroUsd: number;
  burnMicroUsdPerHour: number;
}

/** The minutes until the balance is used up; infinite where nothing is billed. */
export function remainingMinutes({ balanceMicroUsd, burnMicroUsdPerHour }: BalanceReading): number {
  if (balanceMicroUsd <= 0) return 0;
  return burnMicroUsdPerHour === 0 ? Number.POSITIVE_INFINITY : (60 * balanceMicroUsd) / burnMicroUsdPerHour;
}

/** A deployment or volume for which its provider answers 404 although no end was requested. */
export interface LossRecord {
  subjectId: string;
  kind: 'deployment' | 'volume';
  providerId: string;
  /** When the loss ended the subject, or when the loss was first held. */
  at: number;
  /** The loss exceeds the limit: the subject stays as it is until it shows again or an operator accepts the loss. */
  isHeld: boolean;
}

/** The class decides whether the mail can be switched off (M: Events). */
export type MailClass = 'billing' | 'deployment' | 'marketing';

/** A mail that a transaction wrote and that is sent after the commit. */
export interface MailRecord {
  id: string;
  class: MailClass;
  /** The event, such as `low_balance`. */
  kind: string;
  /** Unique, so that the same event is mailed only once. */
  dedupeKey: string;
  to: string;
  subject: string;
  text: string;
  createdAt: number;
  dueAt: number;
  attempts: number;
  lastError: string | null;
  sentAt: number | null;
  /** When the server stopped trying to send it. */
  failedAt: number | null;
}

/** The start of the next page: after the row with this time and id. */
export interface PageEnd {
  at: number;
  id: string;
}
