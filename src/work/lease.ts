/** A named lease: one process holds it at a time. It is stored, so it outlives its holder until it expires. */
export interface LeaseRecord {
  /** Such as `provider:provider-a:0`. */
  name: string;
  /** Grows with each holder: a fencing token. */
  token: number;
  holder: string;
  until: number;
}

export interface LeaseWriter {
  /** Those of the leases that are free, have run out, or are `holder`'s already. Another holder keeps the others. */
  claim(names: readonly string[], holder: string, now: number, ttlMs: number): Promise<LeaseRecord[]>;
  /** Those of the leases that another holder has now, and those that `holder` had last, run out or not. */
  taken(names: readonly string[], holder: string, now: number): Promise<LeaseRecord[]>;
  release(names: readonly string[], holder: string): Promise<void>;
  /** Whether the lease is still this holder's, by its token. Nobody else takes it before the transaction ends. */
  isHeld(lease: Pick<LeaseRecord, 'name' | 'token' | 'holder'>): Promise<boolean>;
}

export interface LeaseTransaction {
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
