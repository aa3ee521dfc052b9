import { z } from 'zod';

/**
 * `platform.on_foreign_snapshot` of every driver whose platform has snapshots: how a delete handles an operator's
 * snapshots and backups of the machine. It waits, with an alarm that names them, or removes them too.
 */
export const onForeignSnapshotSchema = z.enum(['wait', 'delete']).default('wait');
export type OnForeignSnapshot = z.infer<typeof onForeignSnapshotSchema>;

/** Why a delete waits. `kind`: what holds the resource; `where`: on which host, if that is known. */
export function heldBySnapshots(
  { ref, kind, names, where = '' }: { ref: string; kind: string; names: readonly string[]; where?: string },
  policy: OnForeignSnapshot,
): string {
  const advice = policy === 'wait' ? ', or set platform.on_foreign_snapshot: delete' : '';
  return `${kind} hold ${ref}${where}: ${names.join(', ')}. Remove these ${kind}${advice}`;
}
