import type {
  DriverManifest,
  Endpoint,
  FreeUnits,
  MachineSpec,
  Step,
} from '../orchestrator/model/platform-driver.ts';
import type { Clock } from '../ports/clock.ts';
import type { AttachmentRecord, Cause, MachineRecord, VolumeRecord } from './records.ts';

export type Range = [min: number, max: number];

/** Chance. What is drawn has a name, so that draws can be made to depend on it and not on their order. */
export interface Draws {
  durationMs(name: string, range: Range): number;
  happens(name: string, rate: number): boolean;
}

/** What a machine goes through. */
export type Phase = 'boot' | 'stop' | 'start' | 'restart' | 'destroy';
/** What a volume goes through. */
export type VolumePhase = 'create' | 'attach' | 'detach' | 'resize' | 'destroy';

/** What kind of platform it is. `M`: a machine with the fields that only this platform keeps. */
export interface PlatformRules<M extends MachineRecord> {
  manifest: DriverManifest;
  /** How long each takes, in milliseconds. Of volumes, what is absent is done at once. */
  durations: Record<Phase, Range> & { volume?: Partial<Record<VolumePhase, Range>> };
  /** The longest that a caller is asked to wait before it looks at a machine again. Absent: until the change. */
  longestPollMs?: number;
  /** How many machines of the offer fit there; undefined: the platform does not have it. */
  units(offerId: string, datacenter: string): number | undefined;
  /** What it counts free units of. Absent: it does not count. */
  places?: readonly Pick<FreeUnits, 'offerId' | 'datacenter'>[];
  /** Whether a count names the machines whose room is taken off it. Absent: it does. */
  namesCounted?: boolean;
  /** How many calls of its create make a machine: each makes a part of it, and the last boots it. Absent: one. */
  createCalls?(spec: MachineSpec): number;
  /** Why a call does not make the next part; undefined: it does. */
  refusePart?(machine: M): Step<never> | undefined;
  /** Absent: every datacenter has volumes. */
  hasVolumes?(datacenter: string): boolean;
  bootFailureRate?: number;
  /** A machine is reaped when it has been stopped for so long. */
  reapStoppedAfterMs?: number;
  /** So long after a boot the machine is reclaimed. */
  reclaimAfterMs?(spec: MachineSpec): Range | undefined;
  /** Whether a stopped machine still occupies its unit. */
  holdsUnitStopped?(spec: MachineSpec): boolean;
  /** How a machine is shown while it restarts. Absent: it runs, and its guest is down. */
  restartPower?(): 'stopping' | 'starting';
  /** For how long a new resource may be hidden. Absent: not at all. */
  hiddenUpToMs?(): number;
  /** Whether a create finds a machine that is hidden. */
  findsHidden?(): boolean;
  /** Whether removing a machine that is gone is an error. */
  refusesTheGone?: boolean;
  refuseRemoval?(machine: M): Step<never> | undefined;
  /** Whether attachment records outlive their machine. */
  recordsLinger?: boolean;
  /** Whether a volume can be on several machines. Absent: each can. */
  isShareable?(type: string | undefined): boolean;
  /** The fields of its own that a new machine has. */
  make(spec: MachineSpec): Omit<M, keyof MachineRecord>;
  /** What changes when its guest comes up. */
  up?(machine: M, at: number): Partial<M>;
  /** What changes when it has stopped. */
  down?(machine: M): Partial<M>;
  gone?(machine: M): void;
  /** Where it is reached; undefined: it has no address. */
  endpoint(machine: M): Endpoint | undefined;
}

/** Where records are kept. Each is written before it counts: a throw leaves the platform as it was. */
export interface Storage<M extends MachineRecord> {
  machine(before: M | undefined, after: M | undefined): void;
  volume(before: VolumeRecord | undefined, after: VolumeRecord | undefined): void;
  attachment(before: AttachmentRecord | undefined, after: AttachmentRecord | undefined): void;
}

/** Who is told of what happened. */
export interface Observer<M extends MachineRecord> {
  made(machine: M): void;
  /** A call told the platform to remove it. */
  removalOrdered(machine: M): void;
  removed(machine: M, cause: Cause): void;
  /** No unit was free for it. */
  refused(spec: MachineSpec): void;
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
