import { DEFAULT_PLATFORM } from '../model/platform-resource.ts';
import type { MarkName, Store } from '../model/store.ts';
import type { ReconcileContext } from '../platform/context.ts';

// A restore writes one mark, `restored_from`. Each platform is compared with the database in its own time and ends the
// restore for itself, so of several platforms each gets a mark of its own. `default` goes by either.

function marksOf(platform: string): MarkName[] {
  const own: MarkName = `restored_from:${platform}`;
  return platform === DEFAULT_PLATFORM ? [own, 'restored_from'] : [own];
}

/** Gives each of several platforms its own mark. Done again after a crash, it changes nothing that has ended. */
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

/** When the backup was taken that the platform's rows are restored from, in milliseconds since the epoch; null: none. */
export async function restoredFrom({ store, platform }: Deps): Promise<number | null> {
  for (const name of marksOf(platform)) {
    const takenAt = await store.read.marks.get(name);
    if (takenAt !== null) return takenAt;
  }
  return null;
}

/** The platform's rows are reconciled with it. True: no other process has said so before. */
export async function endRestore({ store, platform }: Deps): Promise<boolean> {
  return store.transact(async ({ marks }) => {
    const removed = [];
    for (const name of marksOf(platform)) removed.push(await marks.remove(name));
    return removed.some((takenAt) => takenAt !== null);
  });
}
