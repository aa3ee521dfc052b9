import { toByteSize } from '../../contract/byte-size.ts';
import { remedies } from '../../ports/diagnosis.ts';
import type { Alarms } from './alarms.ts';

const GB = 1e9;
/**
 * With less free space than this, or less than a tenth of a smaller disk, an upgrade, a backup or the journal may not
 * fit.
 */
const LOW_BYTES = 2 * GB;
const LOW_SHARE = 0.1;
/** The factor above the limit at which the alarm ends, so that it does not flap. */
const ENOUGH = 1.25;

interface DiskRoom {
  free: number;
  size: number;
}

/** The free space below which the alarm is raised. */
export const lowDisk = ({ size }: DiskRoom): number => Math.min(LOW_BYTES, LOW_SHARE * size);

/** Raises an alarm before the disk of the database is full, and ends it when there is enough space again. */
export function checkDisk(
  alarms: Pick<Alarms<'disk_low'>, 'raise' | 'end' | 'server'>,
  room: DiskRoom,
): void {
  const { free, size } = room;
  const alarm = { kind: 'disk_low' as const, subject: alarms.server };
  const low = lowDisk(room);
  if (free >= ENOUGH * low) alarms.end(alarm);
  if (free >= low) return;
  alarms.raise({
    ...alarm,
    platform: null,
    text: `the disk of the database is almost full. ${remedies.disk}`,
    detail: `${toByteSize(free)} of ${toByteSize(size)} are free`,
    fields: { free_bytes: free, size_bytes: size },
  });
}
