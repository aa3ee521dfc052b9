import { Fatal } from '../../ports/errors.ts';
import { markOf, type PruneRequest, type Store } from '../model/store.ts';

/** Rows in one transaction: it keeps others waiting for some milliseconds. */
const BATCH = 100;

/**
 * Deletes the oldest tombstones of a platform that ended before a moment, in milliseconds since the epoch: a small
 * transaction for each kind, which also writes the mark by which `wasPruned` recognises what they were about.
 */
export async function pruneTombstones(store: Store, platform: string, endedBefore: number): Promise<void> {
  const request: PruneRequest = { platform, endedBefore, limit: BATCH };
  for (const kind of ['instance', 'volume'] as const)
    await store.transact(async ({ instances, volumes, marks }) => {
      const { newestCreatedAt } = await (kind === 'instance' ? instances : volumes).prune(request);
      if (newestCreatedAt === null) return;
      const name = markOf(platform, `${kind}s_pruned_until`);
      const known = await marks.get(name);
      if (known === null || known < newestCreatedAt) await marks.put(name, newestCreatedAt);
    });
  await store.transact((tx) => tx.attempts.prune(request));
}

/**
 * Refuses a clock that is before what was pruned: if the row of what is created by it were lost, it would not be restored.
 *
 * @throws {Fatal}
 */
export async function assertClockIsPastPruned(
  { read: { marks } }: Pick<Store, 'read'>,
  platforms: Iterable<string>,
  now: number,
): Promise<void> {
  const names = [...platforms].flatMap((platform) => [
    markOf(platform, 'instances_pruned_until'),
    markOf(platform, 'volumes_pruned_until'),
  ]);
  const pruned = await Promise.all(names.map((name) => marks.get(name)));
  const until = Math.max(...pruned.map((at) => at ?? Number.NEGATIVE_INFINITY));
  if (now > until) return;
  throw new Fatal(
    `The clock says ${new Date(now).toISOString()}, but this database has already deleted the rows of instances or volumes that were created until ${new Date(until).toISOString()}: set the clock of this machine and start again.`,
  );
}
