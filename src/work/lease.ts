/**
 * A named lease: at most one process holds it at a time. It is stored, and stays until it expires even if its holder
 * ends.
 */
export interface LeaseRecord {
  /** Such as `provider:provider-a`. */
  name: string;
  /** A fencing token: grows with each new holder. */
  token: number;
  holder: string;
  until: number;
}

export interface LeaseWriter {
  /** Claims the leases that are free, expired or already `holder`'s, and returns those. The others stay as they are. */
  claim(names: readonly string[], holder: string, now: number, ttlMs: number): Promise<LeaseRecord[]>;
  /** The leases that another holder has now, and those that `holder` had last, expired or not. */
  taken(names: readonly string[], holder: string, now: number): Promise<LeaseRecord[]>;
  release(names: readonly string[], holder: string): Promise<void>;
  /**
   * Whether the lease is still this holder's, by its token. No other process can take it before the transaction ends.
   */
  isHeld(lease: Pick<LeaseRecord, 'name' | 'token' | 'holder'>): Promise<boolean>;
}

export interface LeaseTransaction {
  leases: LeaseWriter;
}

/** A store whose transactions include its leases. */
export interface LeasingStore<Tx extends LeaseTransaction = LeaseTransaction> {
  transact<T>(body: (tx: Tx) => Promise<T>): Promise<T>;
}

/** Another process has the lease now. The writes of this transaction are rolled back. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
}

/**
 * Wraps a transaction body so that it runs only while this process holds the lease, by its fencing token. No other
 * process can take the lease before the commit. A holder that was replaced while paused writes nothing:
 * {@link LeaseLost}.
 */
export function fenced<Tx extends LeaseTransaction, T>(
  lease: LeaseRecord,
  body: (tx: Tx) => Promise<T>,
): (tx: Tx) => Promise<T> {
  return async (tx) => {
    if (!(await tx.leases.isHeld(lease)))
      throw new LeaseLost(`the lease ${lease.name} is now held by another process`);
    return body(tx);
  };
}
