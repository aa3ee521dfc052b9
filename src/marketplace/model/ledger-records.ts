/** What is billed. */
export type SubjectKind = 'deployment' | 'volume';

/** A time in which one subject costs one rate. Those of a subject follow on each other without a gap or an overlap. */
export interface SegmentRecord {
  id: string;
  subjectKind: SubjectKind;
  /** A deployment's `id`, a volume's `id`. */
  subjectId: string;
  teamId: string;
  state: 'running' | 'stopped' | 'stored';
  /** What the team pays. */
  rateMicroUsdPerHour: number;
  originalRateMicroUsdPerHour: number;
  /** What the provider asks for it, for the margin; null: nobody knows. */
  providerRateMicroUsdPerHour: number | null;
  discountPercentage: number;
  startedAt: number;
  /** Null: open. A subject has at most one open segment. */
  endedAt: number | null;
  /** Up to when it was posted; what came to nothing has no slice. `startedAt` where nothing was. */
  postedUntil: number;
  /** The sum of the slices: always floor(rate × (postedUntil − startedAt)). */
  postedMicroUsd: number;
  /** When the billing job looks at it next. Of no meaning once it has ended. */
  nextPostAt: number;
}

/** A part of a segment that was taken from the balance; unique per segment and end. */
export interface SliceRecord {
  segmentId: string;
  sliceEnd: number;
  amountMicroUsd: number;
  transactionId: string;
}

export type LedgerTransactionKind = 'usage' | 'top_up' | 'grant' | 'adjustment';

/** One event of the books; its entries add up to zero. Never changed, never deleted. */
export interface LedgerTransactionRecord {
  id: string;
  kind: LedgerTransactionKind;
  teamId: string;
  at: number;
  memo: string;
  /** Unique where there is one: the same event is booked once. */
  reference: string | null;
}

/** `team:<id>` is what a team has left to spend; the others are the house's. */
export type LedgerAccount = `team:${string}` | 'revenue:compute' | 'revenue:storage' | 'cash' | 'promotion';

export interface LedgerEntryRecord {
  transactionId: string;
  account: LedgerAccount;
  /** Positive: more to spend for a team, more earned or given for the house's accounts. */
  amountMicroUsd: number;
}

/** The booking of what a segment took for a time, once from the team and once to the house. */
export interface Usage {
  transaction: LedgerTransactionRecord;
  entries: readonly Omit<LedgerEntryRecord, 'transactionId'>[];
  amountMicroUsd: number;
}

/** A segment as it is once it is posted further, and what that takes; null: less than a micro-USD. */
export interface Posting {
  segment: SegmentRecord;
  usage: Usage | null;
}

/** What a team has at a moment, and how fast it is used. */
export interface BalanceReading {
  at: number;
  /** With what was used and not taken yet. */
  balanceMicroUsd: number;
  burnMicroUsdPerHour: number;
}

/** How long the balance lasts; infinite where nothing is used. */
export function remainingMinutes({ balanceMicroUsd, burnMicroUsdPerHour }: BalanceReading): number {
  if (balanceMicroUsd <= 0) return 0;
  return burnMicroUsdPerHour === 0 ? Number.POSITIVE_INFINITY : (60 * balanceMicroUsd) / burnMicroUsdPerHour;
}

/** A deployment or a volume that its provider answers 404 for although nobody asked for its end. */
export interface LossRecord {
  subjectId: string;
  kind: 'deployment' | 'volume';
  providerId: string;
  /** When it ended by that, or was first held. */
  at: number;
  /** Too many are lost: it is kept as it is until the provider shows it again, or an operator accepts. */
  isHeld: boolean;
}

/** A class decides whether it can be switched off (M: Events). */
export type MailClass = 'billing' | 'deployment' | 'marketing';

/** A mail that was decided on in a transaction and is sent after it. */
export interface MailRecord {
  id: string;
  class: MailClass;
  /** What it is about, such as `low_balance`. */
  kind: string;
  /** Unique: the same news is mailed once. */
  dedupeKey: string;
  to: string;
  subject: string;
  text: string;
  createdAt: number;
  dueAt: number;
  attempts: number;
  lastError: string | null;
  sentAt: number | null;
  /** When it was given up. */
  failedAt: number | null;
}
