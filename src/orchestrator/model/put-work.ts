import { lockVolumesOf } from './lock-rows.ts';
import type { Transaction } from './store.ts';
import type { InstanceWorkKind, VolumeWorkKind } from './work.ts';

/** Puts what is to be done next for an instance, due at once. */
export async function putInstanceWork(
  tx: Transaction,
  resourceId: string,
  kind: InstanceWorkKind,
  now: number,
  deadlineAt: number | null = null,
  cookie: string | null = null,
): Promise<void> {
  await tx.work.put({ resourceId, resourceKind: 'instance', kind, notBefore: now, deadlineAt, cookie });
}

/** Puts what is to be done next for a volume, due at once. */
export async function putVolumeWork(
  tx: Transaction,
  resourceId: string,
  kind: VolumeWorkKind,
  now: number,
  deadlineAt: number | null = null,
  cookie: string | null = null,
): Promise<void> {
  await tx.work.put({ resourceId, resourceKind: 'volume', kind, notBefore: now, deadlineAt, cookie });
}

/** Has the attachments of an instance's volumes gone on with at once. The instance is locked by the caller. */
export async function hastenAttachments(tx: Transaction, instanceId: string, now: number): Promise<void> {
  for (const id of (await lockVolumesOf(tx, [instanceId])).keys())
    if ((await tx.work.of(id))?.kind === 'attach') await tx.work.hasten(id, now);
}
