import { Fatal } from '../../ports/errors.ts';
import type { PruneRequest } from '../model/attempt.ts';
import { markOf } from '../model/marks.ts';
import type { Store } from '../model/store.ts';

/** Rows per transaction, which blocks others for some milliseconds. */
const BATCH = 100;

/**
 * Deletes the oldest tombstones of a platform that ended before `endedBefore`, in milliseconds since the epoch. A small
 * transaction for each kind also writes the mark that `isOlderThanPruned` reads.
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
 * Refuses a clock that is behind the creation time of a pruned row: a resource created then could not be restored if
 * its row were lost.
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
    `The clock shows ${new Date(now).toISOString()}, but this database has already pruned instances or volumes created up to ${new Date(until).toISOString()}: correct the clock of this machine and start again.`,
  );
}
