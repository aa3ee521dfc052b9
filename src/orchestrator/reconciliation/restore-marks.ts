import type { MarkName } from '../model/marks.ts';
import { DEFAULT_PLATFORM } from '../model/platform-resource.ts';
import type { Store } from '../model/store.ts';
import type { ReconcileContext } from '../platform/context.ts';

// A restore writes one mark, `restored_from`. Each platform ends the restore on its own, so with several platforms each
// gets its own mark. `default` uses either mark.

function marksOf(platform: string): MarkName[] {
  const own: MarkName = `restored_from:${platform}`;
  return platform === DEFAULT_PLATFORM ? [own, 'restored_from'] : [own];
}

/**
 * Gives each of several platforms its own mark. A repeated call after a crash does not restart a restore that has
 * ended.
 */
export async function shareRestore(
  { transact }: Pick<Store, 'transact'>,
  platforms: readonly string[],
): Promise<void> {
  if (platforms.length === 1 && platforms[0] === DEFAULT_PLATFORM) return;
  await transact(async ({ marks }) => {
    const takenAt = await marks.remove('restored_from');
    if (takenAt === null) return;
    for (const platform of platforms) await marks.put(`restored_from:${platform}`, takenAt);
  });
}

type Deps = Pick<ReconcileContext, 'store' | 'platform'>;

/**
 * When the backup of the platform's rows was taken, in milliseconds since the epoch. Null if no restore is in progress.
 */
export async function restoredFrom({ store, platform }: Deps): Promise<number | null> {
  for (const name of marksOf(platform)) {
    const takenAt = await store.read.marks.get(name);
    if (takenAt !== null) return takenAt;
  }
  return null;
}

/** Records that the platform's rows are reconciled. Returns whether this process was the first to do so. */
export async function endRestore({ store, platform }: Deps): Promise<boolean> {
  return store.transact(async ({ marks }) => {
    const removed = [];
    for (const name of marksOf(platform)) removed.push(await marks.remove(name));
    return removed.some((takenAt) => takenAt !== null);
  });
}
