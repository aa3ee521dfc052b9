import type { MachineSpec, OwnerRef, Power, VolumeSpec } from '../orchestrator/model/platform-driver.ts';

/** Why a machine is gone. */
export type Cause = 'destroyed' | 'lost' | 'reaped' | 'reclaimed';

/** A machine as its platform keeps it; what a platform adds is fields of its own. Times are milliseconds since the epoch. */
export interface MachineRecord {
  spec: MachineSpec;
  /** Counts up over all machines: it names one where two carry the same ref. */
  number: number;
  createdAt: number;
  /** When gets and listings begin to show it; absent: at once. */
  visibleAt?: number;
  power: Power;
  /** When `power` ends by itself; null: never. */
  until: number | null;
  /** How many more calls of its create it takes before it boots; absent: none. */
  callsLeft?: number;
  /** Whether the boot under way will fail. */
  bootFails: boolean;
  /** Whether it occupies a unit of its offer. */
  holdsUnit: boolean;
  /** When the guest is up; in the future while it reboots. */
  bootedAt: number | null;
  /** Boots so far: names the draws. */
  boots: number;
  /** The last restart that was ordered; absent: none was. */
  restartId?: string;
  /** Whether it runs again after `power`, which a restart put it in. */
  isRestarting?: boolean;
  /** When the platform takes the running machine away; null: never. */
  reclaimAt: number | null;
  /** Why it is `destroying`. */
  cause?: Cause;
  /** Our mark was taken off: it is kept with its disk, and is none of the platform's machines any more. */
  isDisowned?: boolean;
}

export interface VolumeRecord {
  /** As it was ordered. */
  spec: VolumeSpec;
  createdAt: number;
  visibleAt?: number;
  state: 'creating' | 'available' | 'resizing' | 'destroying';
  until: number | null;
  /** Its size since it grew; absent: that of `spec`. */
  sizeGb?: number;
  /** What it grows to while it is `resizing`. */
  nextSizeGb?: number;
}

export interface AttachmentRecord {
  volume: OwnerRef;
  machine: OwnerRef;
  /** The number of that machine; absent in what an earlier version wrote. */
  number?: number;
  state: 'attaching' | 'attached' | 'detaching';
  until: number | null;
}

/** Whether the guest is up, so that its SSH server answers. */
export function isGuestUp({ power, bootedAt }: MachineRecord, now: number): boolean {
  return power === 'running' && bootedAt !== null && bootedAt <= now;
}

/** When the record or its guest changes by itself next; undefined: never. */
export function nextChangeAt({ power, until, bootedAt }: MachineRecord, now: number): number | undefined {
  const ahead = [until, power === 'running' ? bootedAt : null].filter((at) => at !== null && at > now);
  return ahead.length === 0 ? undefined : Math.min(...(ahead as number[]));
}

export function sizeGbOf({ spec, sizeGb = spec.sizeGb }: VolumeRecord): number {
  return sizeGb;
}
