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
