import type { Catalog } from '../../src/orchestrator/catalog/catalog.ts';
import { idOf } from '../../src/orchestrator/model/attempt.ts';
import type { OwnerRef, PlatformDriver } from '../../src/orchestrator/model/platform-driver.ts';
import type { Clock } from '../../src/ports/clock.ts';
import type { Scheduler } from '../../test/support/time/scheduler.ts';
import type { Chance } from '../kernel/chance.ts';
import type { ServerProcess } from '../kernel/process.ts';
import type { Commands } from './commands.ts';

/** A host of the engine. */
export interface EngineHost {
  readonly name: string;
  /** It answers nothing; what it was sent may be carried out once it answers again. */
  isSilent: boolean;
  /** What Berth places machines on, if that is not the host itself. */
  readonly zone?: string;
}

/** Why an engine refuses each create on a host until a person mends that: for another reason, or its pool takes no writes. */
export const FULL = 'No space left on device';
export const READ_ONLY = 'Read-only file system';
export const REFUSED = 'failed to load the AppArmor profile: exit status';

/** Something that holds bytes: the disk of a machine, or a volume. */
export interface Disk {
  readonly host: string;
  readonly name: string;
  /** The ref that it is named after; undefined: it is another's. */
  readonly ref: OwnerRef | undefined;
  /** What was written to it. */
  readonly content: Content;
}

/** What is on a disk. A copy of a disk has a copy of it. */
export interface Content {
  /** Who the guest is that booted from it, since its first boot. */
  readonly guest: Guest | undefined;
  /** What tenants wrote, one after another. */
  readonly written: readonly string[];
}

/** What holds a content, which changes. */
export interface Bytes {
  content: Content;
}

export interface Guest {
  /** As OpenSSH prints it. */
  readonly hostKey: string;
  /** authorized_keys lines. */
  readonly keys: readonly string[];
}

/** A machine as the engine has it, be it ours or not. */
export interface Machine {
  readonly host: string;
  /** The name that it has there now. */
  readonly name: string;
  /** What a rename keeps. */
  readonly identity: string;
  /** The ref in its mark; undefined: it has none of ours. */
  readonly ref: OwnerRef | undefined;
  /** It has our mark and the identity of another machine: somebody copied it. */
  readonly isCopy: boolean;
  /** `destroying`: the engine is removing it, or keeps it for a while after it was removed. */
  readonly power: 'running' | 'paused' | 'stopped' | 'destroying';
  /** Where its guest is reached while it runs. */
  readonly address: { host: string; port: number } | undefined;
  /** Its own disk; undefined: it is not there. */
  readonly disk: Disk | undefined;
  /** The volumes that are plugged in. */
  readonly volumes: readonly Disk[];
}

/** The guest of a machine that runs, and when its SSH answers. */
export interface RunningGuest {
  machine: Machine;
  guest: Guest;
  readyAt: number;
}

/** What happened to something at the engine. */
export type Change =
  | { what: 'machine removed'; machine: Machine }
  | { what: 'disk removed'; disk: Disk }
  /** Another disk of that name took its place, or its content was replaced. */
  | { what: 'disk replaced'; before: Disk; disk: Disk }
  | { what: 'machine booted'; machine: Machine }
  | { what: 'machine made'; machine: Machine };

/** What people do at the engine, without Berth. Each returns whether it could be done. */
export interface HandsOn {
  /** To another host, with its disk. */
  move(machine: Machine, host: string): boolean;
  rename(machine: Machine, name: string): boolean;
  /** The record of a machine goes, and its disk stays. The function brings the record back. */
  undefine(machine: Machine): (() => void) | undefined;
  /** A second machine with a copy of the disk and of our mark. */
  clone(machine: Machine, name: string): boolean;
  /** The machine with its disk. */
  remove(machine: Machine): boolean;
  powerOff(machine: Machine): boolean;
  /** Its removal is accepted, and refused each time, until the function is called. */
  protect?(machine: Machine): (() => void) | undefined;
  /** Each create on the host, or in the zone, is refused until the function is called. */
  refuse?(host: string, why: string): () => void;
  /** No question about one that was listed is answered until the function is called. */
  freeze?(machine: Machine, chance: Chance): (() => void) | undefined;
  /** One of what else people do at this engine, and which; undefined: it could not be done. */
  meddle?(machine: Machine, chance: Chance): string | undefined;
}

/** A compute engine in memory, which real drivers work with. */
export interface Engine {
  readonly hosts: readonly EngineHost[];
  /** The name that the driver's manifest has. */
  readonly driverName: string;
  /** Every command of the driver is a point at which the scheduler may do something else. */
  driver(process: ServerProcess, clock: Clock): PlatformDriver;
  /** The process has ended: half of what it sent is lost. */
  died(process: ServerProcess): void;
  machines(): Machine[];
  /** Of machines and volumes, also those that belong to none. */
  disks(): Disk[];
  /** All that is named or marked after an attempt of the resource, in words. */
  traces(id: string): string[];
  /** Who answers at an address; undefined: no machine that runs has it. */
  guestAt(host: string, port: number): RunningGuest | undefined;
  /** Writes to a disk what its guest was given to write. */
  write(disk: Disk, text: string): void;
  readonly hands: HandsOn;
  /** No command that is under way arrives any more. */
  clear(): void;
}

/**
 * Who did something at the engine: a process of ours, by a command, or a person. `isLate`: the command arrived when its
 * caller had given up.
 */
export type Doer = { process: ServerProcess; line: string; isLate: boolean } | 'a person';

export interface EngineObserver {
  changed(change: Change, by: Doer): void;
}

/** What the engine of a run is made from. */
export interface EngineParts {
  hosts: number;
  datacenter: string;
  catalog: Catalog;
  scheduler: Scheduler;
  chance: Chance;
  commands: Commands;
  observer: EngineObserver;
  isCalm: () => boolean;
  /** Whether the machines of a host share a file system, which may be full or read-only. */
  sharesFileSystem: boolean;
}

/** Whether the ref is that of an attempt of the instance or volume. */
export function isOf(id: string, ref: OwnerRef | undefined): boolean {
  return ref !== undefined && idOf(ref) === id;
}
