import type { Pruned, PruneRequest, Store, Transaction } from '../model/store.ts';
import type { ResourceKind } from '../model/work.ts';

/** Rows in one transaction: it keeps others waiting for some milliseconds. */
const BATCH = 100;

/**
 * Deletes the oldest tombstones that ended before a moment, in milliseconds since the epoch: a small transaction for each
 * kind, which also writes the mark by which `wasPruned` recognises what they were about.
 */
export async function pruneTombstones(store: Store, endedBefore: number): Promise<void> {
  const request: PruneRequest = { endedBefore, limit: BATCH };
  await store.transact(async (tx) => noteWhatWasPruned(tx, 'instance', await tx.instances.prune(request)));
  await store.transact(async (tx) => noteWhatWasPruned(tx, 'volume', await tx.volumes.prune(request)));
}

async function noteWhatWasPruned(
  { marks }: Transaction,
  kind: ResourceKind,
  { newestCreatedAt }: Pruned,
): Promise<void> {
  if (newestCreatedAt === null) return;
  const name = `${kind}s_pruned_until` as const;
  const known = await marks.get(name);
  if (known === null || known < newestCreatedAt) await marks.put(name, newestCreatedAt);
}
