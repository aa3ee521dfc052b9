/** A named lease: one process holds it at a time. It is stored, so it outlives its holder until it expires. */
export interface LeaseRecord {
  /** Such as `provider:provider-a`. */
  name: string;
  /** Grows with each holder: a fencing token. */
  token: number;
  holder: string;
  until: number;
}

export interface LeaseWriter {
  /** The lease if it is free, has run out, or is `holder`'s already; null: somebody else has it. */
  claim(name: string, holder: string, now: number, ttlMs: number): Promise<LeaseRecord | null>;
  release(name: string, holder: string): Promise<void>;
  /** Whether the lease is still this holder's, by its token. Nobody else takes it before the transaction ends. */
  isHeld(lease: Pick<LeaseRecord, 'name' | 'token' | 'holder'>): Promise<boolean>;
}

interface LeaseTransaction {
  leases: LeaseWriter;
}

/** A store that keeps leases beside what they protect. */
export interface LeasingStore<Tx extends LeaseTransaction = LeaseTransaction> {
  transact<T>(body: (tx: Tx) => Promise<T>): Promise<T>;
}

/** Another process has the lease now: what this one decided under it is not written. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
}

/**
 * A transaction body that runs only while this process holds the lease, by its fencing token; nobody else can take it
 * before the commit. A holder that was paused and replaced writes nothing: {@link LeaseLost}.
 */
export function fenced<Tx extends LeaseTransaction, T>(
  lease: LeaseRecord,
  body: (tx: Tx) => Promise<T>,
): (tx: Tx) => Promise<T> {
  return async (tx) => {
    if (!(await tx.leases.isHeld(lease)))
      throw new LeaseLost(`the lease ${lease.name} is another process's by now`);
    return body(tx);
  };
}
