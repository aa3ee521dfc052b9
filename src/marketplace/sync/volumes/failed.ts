import { endBilling } from '../../ledger/bill.ts';
import { logNames, type VolumeRecord } from '../../model/volume-record.ts';
import { isNotFoundTrusted } from '../../providers/loss-cap.ts';
import { transactOnVolume, writeVolume } from '../../volumes/snapshot.ts';
import { getVolume, type VolumeContext } from './step.ts';

/**
 * Ends the bill of a volume in `error` once the provider answers 404. The volume keeps its status until its user
 * deletes it.
 * @throws {ProviderError}
 */
export async function endBillOfFailed(context: VolumeContext, record: VolumeRecord): Promise<void> {
  const { id, startedAt, deletedAt, providerId } = record;
  if (startedAt === null || deletedAt !== null || !(await isGone(context, record))) return;
  await transactOnVolume(context.store, id, async (tx, { record: current }) => {
    if (current.status !== 'error' || current.deletedAt !== null) return;
    const endedAt = await endBilling(context, tx, 'volume', id, context.clock.now());
    await writeVolume(tx, current, { deletedAt: endedAt });
  });
  context.log.info(
    { ...logNames(record), provider: providerId },
    'the provider no longer has a broken volume: its billing has ended',
  );
}

async function isGone(
  context: VolumeContext,
  { providerVolumeId, providerId }: VolumeRecord,
): Promise<boolean> {
  if (providerVolumeId === null) return true;
  if ((await getVolume(context, providerVolumeId)) !== null) return false;
  // A provider that answers 404 for everything does so for existing volumes too.
  return isNotFoundTrusted(context, providerId);
}
