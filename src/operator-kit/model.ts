/** What a key allows, each with what precedes it: to look · to act on what runs · all, also money, accounts and keys. */
export const roles = ['viewer', 'on-call', 'admin'] as const;
export type Role = (typeof roles)[number];

/** Whether a role allows what needs another one. */
export function allows(role: Role, needed: Role): boolean {
  return roles.indexOf(role) >= roles.indexOf(needed);
}

/**
 * A stored key of the admin listener's API and console: its digest, never the key itself. It grants no access to
 * accounts.
 */
export interface OperatorKeyRecord {
  id: string;
  /** Its holder. One operator may have several keys. */
  name: string;
  role: Role;
  /** SHA-256 of the whole key. */
  digest: Buffer;
  prefix: string;
  lastFour: string;
  createdAt: number;
  revokedAt: number | null;
  lastUsedAt: number | null;
}

export interface OperatorKeyReader {
  byDigest(digest: Buffer): Promise<OperatorKeyRecord | null>;
  byId(id: string): Promise<OperatorKeyRecord | null>;
  /** Sorted by age, oldest first. */
  list(): Promise<OperatorKeyRecord[]>;
}
export interface OperatorKeyWriter extends OperatorKeyReader {
  insert(record: OperatorKeyRecord): Promise<void>;
  revoke(id: string, at: number): Promise<void>;
  recordUse(id: string, at: number): Promise<void>;
}

/** A console session. Its secret is in the browser's cookie; only the digest is stored. */
export interface OperatorSessionRecord {
  digest: Buffer;
  /** The id of the operator key that opened it. */
  keyId: string;
  endsAt: number;
}

export interface OperatorSessionReader {
  byDigest(digest: Buffer): Promise<OperatorSessionRecord | null>;
}
export interface OperatorSessionWriter extends OperatorSessionReader {
  /** Adds a session. Removes the sessions that ended before `now`, and the oldest of its key beyond `most`. */
  insert(record: OperatorSessionRecord, limits: { now: number; most: number }): Promise<void>;
  remove(digest: Buffer): Promise<void>;
}

/** `server` means that a server acted by itself, or on a signal. */
export const auditSources = ['api', 'console', 'cli', 'server'] as const;

/** The acting party and its address. */
export interface Actor {
  /** The name of the operator's key; on the command line, the user of the machine. */
  name: string;
  source: (typeof auditSources)[number];
  /** Null for this machine. */
  address: string | null;
  /** The role of the operator's key. Absent for this machine, which may do all. */
  role?: Role;
}

export const auditOutcomes = ['done', 'refused', 'failed'] as const;

/** One row of the audit log: an operator's action or attempt. Times are milliseconds since the Unix epoch. */
export interface AuditEntry {
  at: number;
  actor: string;
  source: Actor['source'];
  address: string | null;
  /** Such as `alarm.acknowledge`. */
  action: string;
  /** The object of the action, such as the id of an instance. Null if it has no single object. */
  subject: string | null;
  /** Other parameters, without secrets. */
  detail: Record<string, unknown>;
  /** `refused`: Berth declined, and changed nothing · `failed`: an error occurred. */
  outcome: (typeof auditOutcomes)[number];
}
export interface AuditRecord extends AuditEntry {
  /** Increases in the order of writing. */
  id: number;
}

export interface AuditReader {
  /** Returns a page of at most `limit` entries, newest first: those older than the entry `before`, or the newest. */
  page(filter: {
    before?: number | undefined;
    limit: number;
    actor?: string | undefined;
    action?: string | undefined;
    subject?: string | undefined;
  }): Promise<AuditRecord[]>;
  /** Returns the newest `limit` entries between both times, which are included, newest first. */
  between(range: { from: number; to: number; limit: number }): Promise<AuditRecord[]>;
}
export interface AuditWriter extends AuditReader {
  add(entry: AuditEntry): Promise<void>;
  /** Deletes those of the oldest `limit` entries that are older than `before`. Returns the number. */
  pruneOldest(before: number, limit: number): Promise<number>;
}

/** Texts, then numbers. Rows with the same texts are added up. */
export type FigureRow = readonly (string | number)[];

/** The figures of one subject, such as a platform, in an hour or a UTC day. `sample` marks the time of a sample. */
export interface FigureRecord {
  step: 'hour' | 'day' | 'sample';
  /** What is counted, such as `calls`. */
  series: string;
  subject: string;
  /** The start of the hour or the day. */
  at: number;
  rows: readonly FigureRow[];
}

/** Records of a series that start from `from` to before `until`. */
export interface FigurePeriod extends Pick<FigureRecord, 'step' | 'series'> {
  /** Absent: of all subjects. */
  subject?: string | undefined;
  from: number;
  until: number;
}

export interface FigureReader {
  /** The oldest first. */
  list(of: FigurePeriod): Promise<FigureRecord[]>;
}
export interface FigureWriter extends FigureReader {
  /** Makes other transactions that call it wait for the end of this one. */
  lock(): Promise<void>;
  /** Returns whether no server has marked a sample of that time yet. */
  claimSample(of: Pick<FigureRecord, 'series' | 'subject' | 'at'>): Promise<boolean>;
  put(record: FigureRecord): Promise<void>;
  /** Deletes at most `limit` records that start before `before`. */
  prune(step: FigureRecord['step'], before: number, limit: number): Promise<void>;
}
