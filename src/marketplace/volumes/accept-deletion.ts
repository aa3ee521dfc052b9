import type { Deps } from '../deps.ts';
import { endBilling } from '../ledger/bill.ts';
import type { Transaction } from '../model/store.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import { writeVolume } from './snapshot.ts';

/**
 * The provider has accepted the deletion of a volume, or may have: billing ends now, and the volume is deleted until a
 * 404 proves that it is gone. `isTaken`: the provider confirmed it. The volume is locked.
 */
export async function acceptDeletion(
  { clock, random }: Pick<Deps, 'clock' | 'random'>,
  tx: Pick<Transaction, 'volumes' | 'ledger' | 'discounts' | 'signals'>,
  record: VolumeRecord,
  isTaken = false,
): Promise<null> {
  if (record.status === 'deleted') return null;
  const now = clock.now();
  const deletionTakenAt = isTaken ? (record.deletionTakenAt ?? now) : record.deletionTakenAt;
  // One that broke, and that the provider did not have, has not cost anything since.
  const deletedAt = record.deletedAt ?? (await endBilling({ random }, tx, 'volume', record.id, now));
  await writeVolume(tx, record, {
    ...(record.status !== 'deleting' && { status: 'deleting', cleanup: 'wanted' }),
    deletedAt,
    deletionTakenAt,
  });
  await tx.signals.wake(record.providerId, record.id);
  return null;
}
