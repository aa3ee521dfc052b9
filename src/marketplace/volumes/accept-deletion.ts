import { endBilling } from '../ledger/bill.ts';
import type { VolumeRecord } from '../records/volume-record.ts';
import type { VolumeDeps } from './deps.ts';
import { transactOnVolume } from './look.ts';
import { writeVolume } from './write.ts';

/**
 * The provider has taken the deletion of a volume, or may have: it costs nothing from now on. `isTaken`: it said that it
 * has the volume and deletes it.
 */
export async function acceptDeletion(
  deps: Pick<VolumeDeps, 'store' | 'clock' | 'random'>,
  { id }: VolumeRecord,
  isTaken = false,
): Promise<void> {
  const { store, clock } = deps;
  await transactOnVolume(store, id, async (tx, { record }) => {
    if (record.status === 'deleted') return;
    const deletionTakenAt = isTaken ? clock.now() : record.deletionTakenAt;
    if (record.status === 'deleting') {
      if (isTaken) await writeVolume(tx, record, { deletionTakenAt });
      return;
    }
    // One that broke, and that the provider did not have, has not cost anything since.
    const deletedAt = record.deletedAt ?? (await endBilling(deps, tx, 'volume', id, clock.now()));
    await writeVolume(tx, record, { status: 'deleting', deletedAt, cleanup: 'wanted', deletionTakenAt });
  });
}
