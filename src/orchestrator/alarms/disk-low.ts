import { toByteSize } from '../../contract/byte-size.ts';
import type { Alarms } from './alarms.ts';

const GB = 1e9;
/** With less free than this, or than a tenth of a smaller disk, an upgrade, a backup or the journal may not fit. */
const LOW_BYTES = 2 * GB;
const LOW_SHARE = 0.1;
/** What is this much above the limit ends the alarm, so that it does not come and go. */
const ENOUGH = 1.25;

/** Raises the alarm of the disk of the database before it is full, and ends it when there is room again. */
export function checkDisk(alarms: Alarms, { free, size }: { free: number; size: number }): void {
  const alarm = { kind: 'disk_low' as const, subject: alarms.server };
  const low = Math.min(LOW_BYTES, LOW_SHARE * size);
  if (free >= ENOUGH * low) alarms.end(alarm);
  if (free >= low) return;
  alarms.raise({
    ...alarm,
    platform: null,
    text: 'the disk of the database is almost full: make room on it; without any, creates and changes are answered with 503',
    detail: `${toByteSize(free)} of ${toByteSize(size)} are free`,
    fields: { free_bytes: free, size_bytes: size },
  });
}
