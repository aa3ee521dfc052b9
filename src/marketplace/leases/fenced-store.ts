import type { LeaseRecord, Store } from '../model/store.ts';

/** Another process has the lease now: what this one decided under it is not written. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
}

/**
 * The store as the holder of a lease writes it: each transaction begins by asking whether this process still holds
 * the lease, by its token, and keeps it from being taken until the commit. A holder that stood still and was replaced
 * writes nothing: its transactions throw {@link LeaseLost}.
 */
export function fencedStore(store: Store, lease: LeaseRecord): Store {
  return {
    get read() {
      return store.read;
    },
    transact: (body) =>
      store.transact(async (tx) => {
        if (!(await tx.leases.isHeld(lease)))
          throw new LeaseLost(`the lease ${lease.name} is another process's by now`);
        return body(tx);
      }),
    snapshot: (body) => store.snapshot(body),
    countRequest: (window) => store.countRequest(window),
    proveWrites: () => store.proveWrites(),
    close: () => store.close(),
  };
}
