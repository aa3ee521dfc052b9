import type { Deps } from '../deps.ts';
import { endBilling } from '../ledger/bill.ts';
import type { Transaction } from '../model/store.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import { writeVolume } from './snapshot.ts';

/**
 * Whether it is not proved yet that the provider has deleted it. One that is `deleted` for its user may be: a create
 * that was given up made it late.
 */
export function isBeingDeleted({ status, cleanup }: VolumeRecord): boolean {
  return status === 'deleting' || cleanup === 'wanted';
}

/**
 * The provider has accepted the deletion of a volume, or may have: billing ends now, and the volume is deleted until a
 * 404 proves that it is gone. `isTaken`: the provider confirmed it, so that a 404 is no loss. The volume is locked.
 */
export async function acceptDeletion(
  { clock, random }: Pick<Deps, 'clock' | 'random'>,
  tx: Pick<Transaction, 'volumes' | 'ledger' | 'discounts' | 'signals' | 'losses'>,
  record: VolumeRecord,
  isTaken = false,
): Promise<null> {
  const isBegun = isBeingDeleted(record);
  if (record.status === 'deleted' && !isBegun) return null;
  const now = clock.now();
  const deletionTakenAt = isTaken ? (record.deletionTakenAt ?? now) : record.deletionTakenAt;
  // One that broke, and that the provider did not have, has not cost anything since.
  const deletedAt = record.deletedAt ?? (await endBilling({ random }, tx, 'volume', record.id, now));
  await writeVolume(tx, record, {
    ...(!isBegun && { status: 'deleting', cleanup: 'wanted' }),
    deletedAt,
    deletionTakenAt,
  });
  if (isTaken) await tx.losses.release(record.id);
  await tx.signals.wake(record.providerId, record.id);
  return null;
}
