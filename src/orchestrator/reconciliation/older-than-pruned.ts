import { markOf } from '../model/marks.ts';
import type { ResourceKind } from '../model/work.ts';
import type { ReconcileContext } from '../platform/context.ts';

/** The row was either deleted as a tombstone or lost. Only an operator can decide which. */
export const PRUNED =
  'its row may have been pruned, so it is unknown whether its instance or volume had ended: inspect it ' +
  'on the platform, then adopt, release or destroy it';

/**
 * Whether the row of a resource may have been pruned. The mark is the latest creation time of a pruned row, written
 * together with its deletion.
 */
export async function isOlderThanPruned(
  { store: { read }, platform }: Pick<ReconcileContext, 'store' | 'platform'>,
  kind: ResourceKind,
  { createdAt }: { createdAt: number },
): Promise<boolean> {
  const until = await read.marks.get(markOf(platform, `${kind}s_pruned_until`));
  return until !== null && createdAt <= until;
}
