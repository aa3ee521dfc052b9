import { createHash } from 'node:crypto';
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

/**
 * A compute engine in memory, which real drivers work with. It tells of each change, and says when the SSH of its guests answers.
 */
export abstract class Engine {
  /** The name that the driver's manifest has. */
  abstract readonly driverName: string;
  abstract readonly hosts: readonly EngineHost[];
  abstract readonly hands: HandsOn;
  protected readonly parts: EngineParts;
  readonly #boots = new Map<string, { guest: Guest; readyAt: number }>();
  #machines = new Map<string, Machine>();
  #disks = new Map<Bytes, Disk>();

  constructor(parts: EngineParts) {
    this.parts = parts;
  }

  /** Every command of the driver is a point at which the scheduler may do something else. */
  abstract driver(process: ServerProcess, clock: Clock): PlatformDriver;
  abstract machines(): Machine[];
  /** All that is named or marked after an attempt of the resource, in words. */
  abstract traces(id: string): string[];
  protected abstract bytes(): Iterable<readonly [Bytes, Disk]>;
  /** The machines that run, what they boot from, and the cloud-init data that they were given. */
  protected abstract running(): Iterable<{ id: string; bytes: Bytes | undefined; data(): string }>;
  /** Whether the guest of a machine runs, and has a network. */
  protected abstract isUp(machine: Machine): boolean;

  /** What tells a machine from all others. */
  protected keyOf({ identity }: Machine): string {
    return identity;
  }

  /** The machines whose changes are told. */
  protected observed(): Machine[] {
    return this.machines();
  }

  /** Of machines and volumes, also those that belong to none. */
  disks(): Disk[] {
    return [...this.bytes()].map(([, disk]) => disk);
  }

  /** Who answers at an address; undefined: no machine that runs has it. */
  guestAt(host: string, port: number): RunningGuest | undefined {
    const isHere = ({ power, address }: Machine): boolean =>
      power !== 'paused' && address?.host === host && address.port === port;
    return this.booted(this.machines().find(isHere));
  }

  /** A machine with the guest that booted last. */
  protected booted(machine: Machine | undefined): RunningGuest | undefined {
    const boot = machine && this.#boots.get(this.keyOf(machine));
    return machine && boot && { machine, ...boot };
  }

  /** A machine has another key now, and its guest runs on. */
  protected moved(before: Machine, after: Machine): void {
    const boot = this.#boots.get(this.keyOf(before));
    if (boot !== undefined) this.#boots.set(this.keyOf(after), boot);
  }

  /** Writes to a disk what its guest was given to write. */
  write({ host, name }: Disk, text: string): void {
    const found = [...this.bytes()].find(([, disk]) => disk.host === host && disk.name === name);
    if (found === undefined) return;
    const [bytes] = found;
    bytes.content = { ...bytes.content, written: [...bytes.content.written, text] };
    this.observe('a person');
  }

  /** No command that is under way arrives any more. */
  clear(): void {
    this.parts.commands.clear();
  }

  /** Compares what it has with what it had before. */
  protected observe(by: Doer): void {
    const { observer } = this.parts;
    this.#bootGuests();
    const [machinesBefore, disksBefore] = [this.#machines, this.#disks];
    this.#machines = new Map(this.observed().map((machine) => [this.keyOf(machine), machine]));
    this.#disks = new Map(this.bytes());
    for (const [key, machine] of machinesBefore) {
      if (this.#machines.has(key)) continue;
      this.#boots.delete(key);
      observer.changed({ what: 'machine removed', machine }, by);
    }
    for (const [bytes, before] of disksBefore) {
      const disk = this.#disks.get(bytes);
      if (disk === undefined) observer.changed({ what: 'disk removed', disk: before }, by);
      else if (before.content.written.some((text) => !disk.content.written.includes(text)))
        observer.changed({ what: 'disk replaced', before, disk }, by);
    }
    for (const [key, machine] of this.#machines) {
      if (!machinesBefore.has(key)) observer.changed({ what: 'machine made', machine }, by);
      if (!this.isUp(machine)) this.#boots.delete(key);
      else if (!this.#boots.has(key) && this.#hasBooted(machine, key))
        observer.changed({ what: 'machine booted', machine }, by);
    }
  }

  /** At its first boot a guest takes its keys from the cloud-init data, and keeps them on its disk. */
  #bootGuests(): void {
    for (const { id, bytes, data } of this.running())
      if (bytes !== undefined && bytes.content.guest === undefined)
        bytes.content = { ...bytes.content, guest: guestOf(data(), id) };
  }

  #hasBooted({ disk }: Machine, key: string): boolean {
    const { scheduler, chance } = this.parts;
    const guest = disk?.content.guest;
    if (guest === undefined) return false;
    this.#boots.set(key, { guest, readyAt: scheduler.now + chance.between(500, 15_000) });
    return true;
  }
}

/** Whether the ref is that of an attempt of the instance or volume. */
export function isOf(id: string, ref: OwnerRef | undefined): boolean {
  return ref !== undefined && idOf(ref) === id;
}

/**
 * What a guest finds at its first boot in the cloud-init data that it was given. Without a host key there it makes one:
 * `madeOf` is what is its own.
 */
function guestOf(text: string, madeOf = ''): Guest {
  const keys = [...text.matchAll(/"(ssh-ed25519 [A-Za-z0-9+/=]+[^"]*)"/g)].map(([, key = '']) => key);
  const own = /"ed25519_public": *"(ssh-ed25519 [^"]+)"/.exec(text)?.[1];
  const blob = Buffer.from(own?.split(' ')[1] ?? madeOf, 'base64');
  const digest = createHash('sha256').update(blob).digest('base64').replaceAll('=', '');
  return { hostKey: `SHA256:${digest}`, keys: keys.filter((key) => key !== own) };
}
