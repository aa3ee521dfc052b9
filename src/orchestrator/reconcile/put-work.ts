import type { Transaction } from '../ports/store.ts';
import type { InstanceWorkKind, VolumeWorkKind } from './work.ts';

/** Puts what is to be done next for an instance, due at once. */
export async function putInstanceWork(
  tx: Transaction,
  resourceId: string,
  kind: InstanceWorkKind,
  now: number,
  deadlineAt: number | null = null,
): Promise<void> {
  await tx.work.put({ resourceId, resourceKind: 'instance', kind, notBefore: now, deadlineAt });
}

/** Puts what is to be done next for a volume, due at once. */
export async function putVolumeWork(
  tx: Transaction,
  resourceId: string,
  kind: VolumeWorkKind,
  now: number,
): Promise<void> {
  await tx.work.put({ resourceId, resourceKind: 'volume', kind, notBefore: now, deadlineAt: null });
}
