import { fromNote as instanceFromNote, type NotedInstance } from '../instances/note.ts';
import type { OwnerRef } from '../model/platform-driver.ts';
import { instanceLogNames, volumeLogNames } from '../model/records.ts';
import { putInstanceWork, putVolumeWork } from '../model/rows.ts';
import { markOf } from '../model/store.ts';
import type { ResourceKind } from '../model/work.ts';
import { type NotedVolume, fromNote as volumeFromNote } from '../volumes/note.ts';
import type { ReconcileContext } from './context.ts';

/**
 * Whether a resource without a row had a tombstone that was pruned. The mark is the latest creation of a pruned row, and
 * is written with its deletion: whatever was created until then was either pruned, or is in this database and in every
 * backup of it that has the mark. So a row that was lost with the database is never older than the mark.
 */
export async function wasPruned(
  { store: { read }, platform }: Pick<ReconcileContext, 'store' | 'platform'>,
  kind: ResourceKind,
  { createdAt }: { createdAt: number },
): Promise<boolean> {
  const until = await read.marks.get(markOf(platform, `${kind}s_pruned_until`));
  return until !== null && createdAt <= until;
}

/** Writes the tombstone of a machine again, and has the machine destroyed: a late create made it. */
export async function destroyPruned(
  { store, platform, clock, log }: ReconcileContext,
  ref: OwnerRef,
  noted: NotedInstance,
): Promise<void> {
  await store.transact(async (tx) => {
    if ((await tx.instances.byId(noted.id)) !== null) return;
    const now = clock.now();
    const record = instanceFromNote({ platform, ref }, noted, {
      status: 'DESTROYED',
      endpoint: null,
      hostKeyFingerprint: null,
      now,
    });
    await tx.instances.insert(record);
    await putInstanceWork(tx, record.id, 'destroy', now);
    log.error(
      { ...instanceLogNames(record), ref },
      'the machine of an instance that ended long ago is there: it is destroyed again',
    );
  });
}

/** {@link destroyPruned}, for a volume. */
export async function deletePruned(
  { store, platform, clock, log }: ReconcileContext,
  ref: OwnerRef,
  noted: NotedVolume,
): Promise<void> {
  await store.transact(async (tx) => {
    if ((await tx.volumes.byId(noted.id)) !== null) return;
    const now = clock.now();
    const record = {
      ...volumeFromNote({ platform, ref }, noted),
      status: 'DELETING' as const,
      deletedAt: now,
    };
    await tx.volumes.insert(record);
    await putVolumeWork(tx, record.id, 'destroy', now);
    log.error(
      { ...volumeLogNames(record), ref },
      'a volume that was deleted long ago is there: it is deleted again',
    );
  });
}
