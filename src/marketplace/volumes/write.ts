import { assertTransition } from '../../contract/transitions.ts';
import { volumeTransitions } from '../contract/volume.ts';
import type { Transaction } from '../ports/store.ts';
import type { VolumeRecord } from '../records/volume-record.ts';

export type VolumeChange = Partial<Omit<VolumeRecord, 'id' | 'revision' | 'totalCostMicroUsd'>>;

/** The one writer of a volume that exists. @throws {IllegalTransition} if the table has no such edge. */
export async function writeVolume(
  tx: Pick<Transaction, 'volumes'>,
  record: VolumeRecord,
  change: VolumeChange,
): Promise<VolumeRecord> {
  if (change.status !== undefined && change.status !== record.status)
    assertTransition(volumeTransitions, record.status, change.status, `volume ${record.id}`);
  const written = { ...record, ...change };
  await tx.volumes.update(written);
  return written;
}
