import { canTransition } from '../../../src/contract/transitions.ts';
import { volumeTransitions } from '../../../src/contract/volume.ts';
import type { VolumeRecord } from '../../../src/orchestrator/model/records.ts';
import { hold } from '../../kernel/violation.ts';

/** One write of a volume's row. */
export interface VolumeWritten {
  before: VolumeRecord | undefined;
  after: VolumeRecord;
}

/** What is true of a volume when its row is written. */
export interface VolumeTruth {
  /** Whether the platform has it, even if it does not show it. */
  exists: boolean;
  /** Whether its tenant ever sent a DELETE. */
  isDeleteSent: boolean;
}

/** I5: a write follows the table of transitions; one commit may hold two of them. */
export function volumeFollowsTheTable({ before, after }: VolumeWritten): void {
  if (before === undefined) {
    hold('I5', after.status === 'CREATING', () => `${after.id} began as ${after.status}`, [after.id]);
    return;
  }
  if (before.status === after.status) return;
  const isLegal =
    canTransition(volumeTransitions, before.status, after.status) ||
    volumeTransitions[before.status].some((between) =>
      canTransition(volumeTransitions, between, after.status),
    );
  hold('I5', isLegal, () => `${after.id} went from ${before.status} to ${after.status}`, [after.id]);
}

/** I12: a volume is written as gone only when nothing of it is left. */
export function volumeGoneIsProved({ before, after }: VolumeWritten, { exists }: VolumeTruth): void {
  if (after.deletedAt === null || (before !== undefined && before.deletedAt !== null)) return;
  hold('I12', !exists, () => `${after.id} is proved gone, and the platform has it`, [
    after.id,
    after.ownerRef,
  ]);
}

/** I3: only its tenant ends a volume that was made, and none is given up that the platform has. */
export function volumeEndIsTrue(
  { before, after }: VolumeWritten,
  { exists, isDeleteSent }: VolumeTruth,
): void {
  if (before === undefined || before.status === after.status) return;
  const words = [after.id, after.ownerRef];
  if (after.status === 'DELETING')
    hold('I3', isDeleteSent, () => `${after.id} is DELETING, and nobody asked for it`, words);
  if (after.status === 'ERROR')
    hold('I3', !exists, () => `${after.id} went from ${before.status} to ERROR, and it is there`, words);
}

/** I2: a row exists before its volume is made. */
export function rowComesBeforeVolume(ref: string, row: VolumeRecord | undefined): void {
  hold('I2', row !== undefined, () => `a volume was made for ${ref}, which no row owns`, [ref]);
}

/** I12: no volume is made for a row that is written as gone. */
export function noVolumeForTheDead(ref: string, row: VolumeRecord | undefined): void {
  const isGone = row !== undefined && row.deletedAt !== null;
  hold('I12', !isGone, () => `a volume was made for ${ref}, which is proved gone`, [ref]);
}

/** I9: a committed volume, or a committed deletion, survives a power cut. */
export function noVolumeIsForgotten(
  { id, deletedAt }: Pick<VolumeRecord, 'id' | 'deletedAt'>,
  found: Pick<VolumeRecord, 'deletedAt'> | null,
): void {
  const isThere = found !== null && (deletedAt === null || found.deletedAt !== null);
  hold('I9', isThere, () => `${id} is ${found === null ? 'not there' : 'not gone'} after a power cut`, [id]);
}
