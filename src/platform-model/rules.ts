import type { FreeUnits, ObservedHost } from '../orchestrator/model/inventory.ts';
import type {
  DriverManifest,
  Endpoint,
  MachineSpec,
  OwnerRef,
  Step,
} from '../orchestrator/model/platform-driver.ts';
import type { Clock } from '../ports/clock.ts';
import type { AttachmentRecord, Cause, MachineRecord, VolumeRecord } from './records.ts';

export type Range = readonly [min: number, max: number];

/** Random draws. Each draw has a name, so that its result can depend on the name and not on the order of draws. */
export interface Draws {
  durationMs(name: string, range: Range): number;
  happens(name: string, rate: number): boolean;
}

/** Timed phases of a machine. */
export type Phase = 'boot' | 'stop' | 'start' | 'restart' | 'destroy';
/** Timed phases of a volume. */
export type VolumePhase = 'create' | 'attach' | 'detach' | 'resize' | 'destroy';

/** A free unit of an offer on a host. */
export type Slot = Required<Pick<MachineRecord, 'host' | 'slot'>>;

/** The hosts of a platform. `machines`: all that exist. */
export interface HostRules<M extends MachineRecord> {
  /** The slots that a machine can take, best first. `only`: on this host. */
  freeSlots(
    wanted: Pick<MachineSpec, 'offerId' | 'datacenter' | 'avoidHosts'> & { only?: string | undefined },
    machines: readonly M[],
  ): readonly Slot[];
  /** The hosts, and the count with the reasons why no unit is free. */
  report(
    free: readonly FreeUnits[],
    machines: readonly M[],
    avoidHosts: readonly string[],
  ): { free: FreeUnits[]; hosts: ObservedHost[] };
}

/** The behaviour of a platform. `M`: a machine with the fields that only this platform keeps. */
export interface PlatformRules<M extends MachineRecord> {
  manifest: DriverManifest;
  /** Duration of each phase, in milliseconds. An absent volume phase takes no time. */
  durations: Record<Phase, Range> & { volume?: Partial<Record<VolumePhase, Range>> };
  /** Longest poll interval for a machine. Absent: until the change. */
  longestPollMs?: number;
  /** Number of machines of the offer that fit in the datacenter; undefined: the platform does not have the offer. */
  units(offerId: string, datacenter: string): number | undefined;
  /** The offers and datacenters whose free units are counted. Absent: the platform does not count. */
  places?: readonly Pick<FreeUnits, 'offerId' | 'datacenter'>[];
  /** Whether an inventory names the machines that it has counted as occupying units. Default: true. */
  namesCounted?: boolean;
  /** Absent: the platform does not report hosts. */
  hosts?: HostRules<M>;
  /** Number of create calls that make a machine: each makes a part, and the last one boots it. Absent: one. */
  createCalls?(spec: MachineSpec): number;
  /** Why the next part cannot be made; undefined: it can. */
  refusePart?(machine: M): Step<never> | undefined;
  /** Absent: every datacenter has volumes. */
  hasVolumes?(datacenter: string): boolean;
  bootFailureRate?: number;
  /** Age at which a stopped machine is reaped. */
  reapStoppedAfterMs?: number;
  /** Time from a boot until the machine is reclaimed. */
  reclaimAfterMs?(spec: MachineSpec): Range | undefined;
  /** Whether a stopped machine still occupies its unit. */
  holdsUnitStopped?(spec: MachineSpec): boolean;
  /** The power shown while a machine restarts. Absent: `running`, with its guest down. */
  restartPower?(): 'stopping' | 'starting';
  /** Longest time for which a new resource may be hidden. Absent: zero. */
  hiddenUpToMs?(): number;
  /** Whether a create finds a hidden machine. */
  findsHidden?(): boolean;
  /** Whether destroying a machine that is gone is an error. */
  refusesTheGone?: boolean;
  refuseRemoval?(machine: M): Step<never> | undefined;
  /** Whether attachment records outlive their machine. */
  recordsLinger?: boolean;
  /** Whether a volume of this type can be attached to several machines. Absent: every volume can. */
  isShareable?(type: string | undefined): boolean;
  /** This platform's own fields of a new machine. */
  make(spec: MachineSpec): Omit<M, keyof MachineRecord>;
  /** Field changes when the guest comes up. */
  up?(machine: M, at: number): Partial<M>;
  /** Field changes when the machine has stopped. */
  down?(machine: M): Partial<M>;
  gone?(machine: M): void;
  /** The machine's endpoint; undefined: it has no address. */
  endpoint(machine: M): Endpoint | undefined;
}

/** Stores records. Each record is written before it takes effect: if a write throws, the platform is unchanged. */
export interface Storage<M extends MachineRecord> {
  machine(before: M | undefined, after: M | undefined): void;
  volume(before: VolumeRecord | undefined, after: VolumeRecord | undefined): void;
  attachment(before: AttachmentRecord | undefined, after: AttachmentRecord | undefined): void;
  /** How much the files of a volume take. Absent if volumes have no files. */
  usedBytesOfVolume?(ref: OwnerRef): number;
}

/** Notified of changes. */
export interface Observer<M extends MachineRecord> {
  made(machine: M): void;
  /** A call ordered the removal of the machine. */
  removalOrdered(machine: M): void;
  removed(machine: M, cause: Cause): void;
  volumeMade(volume: VolumeRecord): void;
  volumeRemoved(volume: VolumeRecord): void;
  attached(volume: VolumeRecord): void;
}

export interface Ports<M extends MachineRecord> {
  clock: Pick<Clock, 'now'>;
  rules: PlatformRules<M>;
  machineDraws: Draws;
  volumeDraws: Draws;
  storage?: Storage<M>;
  observer?: Partial<Observer<M>>;
}
