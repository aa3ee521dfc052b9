import type { MachineRecord } from './records.ts';

/**
 * The record as it is at `now`; undefined: the machine is gone. Pure: the same record, time and rule
 * give the same answer, so that nothing depends on who looked in between, or whether anybody did.
 */
export function machineAt(
  record: MachineRecord,
  now: number,
  reapStoppedAfterMs: number | undefined,
): MachineRecord | undefined {
  let current = record;
  while (current.until !== null && current.until <= now) {
    const next = follow(current, current.until, reapStoppedAfterMs);
    if (next === undefined) return undefined;
    current = next;
  }
  return current;
}

/** What follows when `power` ends by itself at `at`. */
function follow(
  record: MachineRecord,
  at: number,
  reapStoppedAfterMs: number | undefined,
): MachineRecord | undefined {
  switch (record.power) {
    case 'building':
      return record.bootFails ? { ...record, power: 'failed', until: null } : running(record, at);
    case 'starting':
      return running(record, at);
    case 'stopping': {
      const until = reapStoppedAfterMs === undefined ? null : at + reapStoppedAfterMs;
      return { ...record, power: 'stopped', until, holdsUnit: false };
    }
    // Reclaimed, reaped, destroyed.
    case 'running':
    case 'stopped':
    case 'destroying':
      return undefined;
    case 'failed':
      return { ...record, until: null };
  }
}

function running(record: MachineRecord, at: number): MachineRecord {
  return { ...record, power: 'running', until: record.reclaimAt, bootedAt: at };
}

/** Whether the guest is up, so that its SSH server answers. */
export function isGuestUp(record: MachineRecord, now: number): boolean {
  return record.power === 'running' && record.bootedAt !== null && record.bootedAt <= now;
}

/** When the record or its guest changes by itself next; undefined: never. */
export function nextChangeAt(record: MachineRecord, now: number): number | undefined {
  const times = [record.until, record.power === 'running' ? record.bootedAt : null];
  const ahead = times.filter((time) => time !== null && time > now) as number[];
  return ahead.length === 0 ? undefined : Math.min(...ahead);
}

/** The machine's address inside the platform: one of 10.0.0.0/8 for each machine. */
export function privateIpOf({ number }: MachineRecord): string {
  const hosts = 254;
  return `10.${64 + (Math.floor(number / (hosts * 256)) % 128)}.${Math.floor(number / hosts) % 256}.${1 + (number % hosts)}`;
}
