import { endBilling } from '../ledger/bill.ts';
import type { VolumeRecord } from '../records/volume-record.ts';
import type { VolumeDeps } from './deps.ts';
import { transactOnVolume } from './look.ts';
import { writeVolume } from './write.ts';

/** The provider has taken the deletion of a volume, or may have: it costs nothing from now on. */
export async function acceptDeletion(
  deps: Pick<VolumeDeps, 'store' | 'clock' | 'random'>,
  { id }: VolumeRecord,
): Promise<void> {
  const { store, clock } = deps;
  await transactOnVolume(store, id, async (tx, { record }) => {
    if (record.status === 'deleting' || record.status === 'deleted') return;
    const deletedAt = await endBilling(deps, tx, 'volume', id, clock.now());
    await writeVolume(tx, record, { status: 'deleting', deletedAt, cleanup: 'wanted' });
  });
}
