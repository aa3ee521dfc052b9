/** A key of the admin listener's API and console, as stored: never the key itself. It opens no account. */
export interface OperatorKeyRecord {
  id: string;
  /** Who has it; one operator may have several. */
  name: string;
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
  /** The oldest first. */
  list(): Promise<OperatorKeyRecord[]>;
}
export interface OperatorKeyWriter extends OperatorKeyReader {
  insert(record: OperatorKeyRecord): Promise<void>;
  revoke(id: string, at: number): Promise<void>;
  recordUse(id: string, at: number): Promise<void>;
}

/** `server`: a server did it by itself, or for a signal. */
export const auditSources = ['api', 'console', 'cli', 'server'] as const;

/** Who acts, and from where. */
export interface Actor {
  /** The name of the operator's key; on the command line the user of the machine. */
  name: string;
  source: (typeof auditSources)[number];
  /** Null: this machine. */
  address: string | null;
}

export const auditOutcomes = ['done', 'refused', 'failed'] as const;

/** One row of the audit log: what an operator did or tried. Times are milliseconds since the Unix epoch. */
export interface AuditEntry {
  at: number;
  actor: string;
  source: Actor['source'];
  address: string | null;
  /** Such as `alarm.acknowledge`. */
  action: string;
  /** What was acted on, such as the id of an instance; null: it is about no one thing. */
  subject: string | null;
  /** What else was given, without secrets. */
  detail: Record<string, unknown>;
  /** `refused`: Berth would not, and changed nothing · `failed`: it could not. */
  outcome: (typeof auditOutcomes)[number];
}
export interface AuditRecord extends AuditEntry {
  /** In the order in which they were written. */
  id: number;
}

export interface AuditReader {
  /** The newest first: the next `limit` that are older than the entry `before`, from the newest one where there is none. */
  page(filter: {
    before?: number | undefined;
    limit: number;
    actor?: string | undefined;
    action?: string | undefined;
    subject?: string | undefined;
  }): Promise<AuditRecord[]>;
}
export interface AuditWriter extends AuditReader {
  add(entry: AuditEntry): Promise<void>;
  /** Of the oldest `limit` entries, deletes those from before a time; returns how many. */
  pruneOldest(before: number, limit: number): Promise<number>;
}
