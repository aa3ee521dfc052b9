import { toByteSize } from '../../contract/byte-size.ts';
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

/** Raises an alarm before the disk of the database is full, and ends it when there is enough space again. */
export function checkDisk(
  alarms: Pick<Alarms<'disk_low'>, 'raise' | 'end' | 'server'>,
  { free, size }: { free: number; size: number },
): void {
  const alarm = { kind: 'disk_low' as const, subject: alarms.server };
  const low = Math.min(LOW_BYTES, LOW_SHARE * size);
  if (free >= ENOUGH * low) alarms.end(alarm);
  if (free >= low) return;
  alarms.raise({
    ...alarm,
    platform: null,
    text: 'the disk of the database is almost full: free some space; when it is full, creates and changes are answered with 503',
    detail: `${toByteSize(free)} of ${toByteSize(size)} are free`,
    fields: { free_bytes: free, size_bytes: size },
  });
}
