import type { MachineSpec, OwnerRef, Power, VolumeSpec } from '../orchestrator/model/platform-driver.ts';

/** Why a machine is gone. */
export type Cause = 'destroyed' | 'lost' | 'reaped' | 'reclaimed';

/** A machine as its platform stores it. A platform may add fields. Times are milliseconds since the epoch. */
export interface MachineRecord {
  spec: MachineSpec;
  /** Sequence number over all machines; distinguishes machines with the same ref. */
  number: number;
  createdAt: number;
  /** When get and list start to show it; absent: at once. */
  visibleAt?: number;
  /** The host that has it and, while it holds a unit, the slot there. Absent: the platform does not report hosts. */
  host?: string;
  slot?: number;
  power: Power;
  /** When `power` ends by itself; null: never. */
  until: number | null;
  /** Remaining create calls before it boots; absent: none. */
  callsLeft?: number;
  /** Whether the boot under way will fail. */
  bootFails: boolean;
  /** Whether it occupies a unit of its offer. */
  holdsUnit: boolean;
  /** When the guest is up; in the future during a reboot. */
  bootedAt: number | null;
  /** Boots so far; part of the names of its draws. */
  boots: number;
  /** Id of the last restart; absent: none. */
  restartId?: string;
  /** Whether it runs again after `power`, as part of a restart. */
  isRestarting?: boolean;
  /** When the platform reclaims the running machine; null: never. */
  reclaimAt: number | null;
  /** How long a reclaim takes; absent: no time. */
  reclaimTakesMs?: number;
  /** Why it is `destroying`. */
  cause?: Cause;
  /** Berth's mark was removed. The record and the disk are kept, but the machine is no longer listed. */
  isDisowned?: boolean;
}

export interface VolumeRecord {
  /** The ordered spec. */
  spec: VolumeSpec;
  createdAt: number;
  visibleAt?: number;
  state: 'creating' | 'available' | 'resizing' | 'destroying';
  until: number | null;
  /** Size after a resize; absent: the size in `spec`. */
  sizeGb?: number;
  /** How much of it is used, if that was set. */
  usedBytes?: number;
  /** Target size while it is `resizing`. */
  nextSizeGb?: number;
}

export interface AttachmentRecord {
  volume: OwnerRef;
  machine: OwnerRef;
  /** The number of that machine. */
  number: number;
  state: 'attaching' | 'attached' | 'detaching';
  until: number | null;
}

/** Whether the guest is up, so that its SSH server answers. */
export function isGuestUp({ power, bootedAt }: MachineRecord, now: number): boolean {
  return power === 'running' && bootedAt !== null && bootedAt <= now;
}

/** When the record or its guest next changes by itself; undefined: never. */
export function nextChangeAt({ power, until, bootedAt }: MachineRecord, now: number): number | undefined {
  const ahead = [until, power === 'running' ? bootedAt : null].filter((at) => at !== null && at > now);
  return ahead.length === 0 ? undefined : Math.min(...(ahead as number[]));
}

export function sizeGbOf({ spec, sizeGb = spec.sizeGb }: VolumeRecord): number {
  return sizeGb;
}
