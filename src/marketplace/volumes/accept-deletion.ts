import type { Deps } from '../deps.ts';
import { endBilling } from '../ledger/bill.ts';
import type { Transaction } from '../model/store.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import { writeVolume } from './snapshot.ts';

/**
 * Whether a deletion was requested and is not proved yet. This includes a volume that is `deleted` for its user, but
 * that an abandoned create made late.
 */
export function isBeingDeleted({ status, cleanup }: VolumeRecord): boolean {
  return status === 'deleting' || cleanup === 'wanted';
}

/**
 * Ends billing, because the provider has accepted the deletion or may have. A 404 proves the deletion later. `isTaken`
 * means that the provider confirmed it, so that a 404 is not a loss. The volume must be locked.
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
  // The billing of a broken volume has already ended if its provider answered 404.
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
