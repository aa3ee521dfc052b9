import type { Scheduler } from '../../../test/support/time/scheduler.ts';
import type { Chance } from '../../kernel/chance.ts';
import { type Content, type Doer, type EngineHost, FULL, READ_ONLY } from '../engine.ts';

export const PROJECT = 'berth';
export const POOL = 'default';
export const NETWORK = 'incusbr0';
export const EMPTY: Content = { guest: undefined, written: [] };
/** `cluster.offline_threshold`. */
const OFFLINE_AFTER_MS = 20_000;
/** Incus forgets an operation so long after its end. */
const REMEMBERED_MS = 5_000;
/** How often what Incus does in the background fails by itself. */
const FAILURES = 0.01;
/** How often a daemon ends while it does something in the background. */
const ENDS = 0.01;

/** Incus says no: at once, or at the end of an operation. */
export class Refusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** The daemon that was at it has ended. */
export class Interrupted extends Error {}

export type Config = Record<string, string>;
export type Devices = Record<string, Record<string, string>>;

/** What a disk or a volume holds. */
export interface Bytes {
  content: Content;
}

export interface Instance {
  name: string;
  member: Member;
  /** `volatile.uuid`. */
  uuid: string;
  config: Config;
  devices: Devices;
  createdAt: string;
  startedAt: string;
  isRunning: boolean;
  /** Of its network, while it runs and once it has one. */
  ip: string | undefined;
  lastIp: string | undefined;
  /** Undefined: it is deleted, and its record is still there. */
  disk: Bytes | undefined;
  /** Whether its disk is a complete copy of its image. */
  isWhole: boolean;
  /** Somebody has copied it from another. */
  isCopy: boolean;
  /** Incus is moving it: what it is the next record of. */
  movedFrom: Instance | undefined;
  /** A move has put this record in its place. */
  movedTo: Instance | undefined;
  /** `security.protection.delete`. */
  isProtected: boolean;
  /** What Incus does with it. */
  busy: string | undefined;
  /** The last change of its configuration. */
  last: Promise<unknown>;
}

export interface Volume {
  name: string;
  member: Member;
  config: Config;
  createdAt: string;
  bytes: Bytes;
}

export interface ForwardPort {
  description: string;
  protocol: string;
  listen_port: string;
  target_port: string;
  target_address: string;
}

export interface Forward {
  member: Member;
  listen: string;
  description: string;
  ports: ForwardPort[];
}

export interface Operation {
  id: string;
  description: string;
  member: Member;
  createdAt: string;
  status: number;
  error: string | undefined;
  resources: Record<string, string[]> | null;
}

/** A server of the cluster. */
export class Member implements EngineHost {
  readonly name: string;
  /** Where tenants reach its forwarded ports. */
  readonly publicIp: string;
  image: 'missing' | 'unpacking' | 'whole' | 'broken' = 'missing';
  /** How often its daemon has ended. */
  ends = 0;
  silentSince: number | undefined;
  /** Why it makes no instances. */
  refusal: string | undefined;
  readonly #fellSilent: (member: Member) => void;
  readonly #waiting = new Set<() => void>();

  constructor(name: string, publicIp: string, fellSilent: (member: Member) => void) {
    this.name = name;
    this.publicIp = publicIp;
    this.#fellSilent = fellSilent;
  }

  /** @throws {Refusal} if its pool takes no writes */
  write(): void {
    if (this.refusal === FULL || this.refusal === READ_ONLY) throw new Refusal(500, this.refusal);
  }

  get isSilent(): boolean {
    return this.silentSince !== undefined;
  }

  set isSilent(isSilent: boolean) {
    if (isSilent === this.isSilent) return;
    if (isSilent) this.#fellSilent(this);
    else {
      this.silentSince = undefined;
      for (const goOn of this.#waiting) goOn();
      this.#waiting.clear();
    }
  }

  answers(): Promise<void> {
    if (!this.isSilent) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.add(resolve));
  }

  /** What waited for it is never carried out. */
  forget(): void {
    this.#waiting.clear();
  }
}

interface Parts {
  members: number;
  hasForwards: boolean;
  scheduler: Scheduler;
  chance: Chance;
  isCalm: () => boolean;
  /** Something has changed. */
  observe: (by: Doer) => void;
}

/** What Incus has, and how long it takes. */
export class Cluster {
  readonly members: readonly Member[];
  readonly hasForwards: boolean;
  poolDriver = 'lvm';
  readonly instances = new Map<string, Instance>();
  readonly volumes: Volume[] = [];
  readonly forwards: Forward[] = [];
  /** The configuration of the project. */
  project: Record<string, string> = { 'features.images': 'true' };
  readonly operations = new Map<string, Operation>();
  /** Disks whose record somebody has lost, with what they were of. */
  readonly lost = new Set<Instance>();
  readonly #parts: Parts;
  #ids = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.hasForwards = parts.hasForwards;
    const names =
      parts.members === 1 ? ['none'] : Array.from({ length: parts.members }, (_, index) => `m${index + 1}`);
    this.members = names.map(
      (name, index) => new Member(name, `203.0.113.${index + 1}`, (member) => this.#fellSilent(member)),
    );
  }

  get isClustered(): boolean {
    return this.members.length > 1;
  }

  get chance(): Chance {
    return this.#parts.chance;
  }

  get now(): number {
    return this.#parts.scheduler.now;
  }

  nowText(): string {
    return new Date(this.now).toISOString();
  }

  id(): string {
    return `00000000-0000-4000-8000-${String(++this.#ids).padStart(12, '0')}`;
  }

  observe(by: Doer): void {
    this.#parts.observe(by);
  }

  /** Throws now and then, as what an engine does may fail for reasons of its own. */
  mayFail(what: string): void {
    if (!this.#parts.isCalm() && this.chance.happens(FAILURES)) throw new Refusal(500, what);
  }

  /** Mostly short, and long now and then. */
  async takes(shortMs: number, longMs: number): Promise<void> {
    const isLong = !this.#parts.isCalm() && this.chance.happens(0.08);
    await this.#parts.scheduler.sleep(
      isLong ? this.chance.between(shortMs, longMs) : this.chance.between(0, shortMs),
    );
  }

  sleep(ms: number): Promise<void> {
    return this.#parts.scheduler.sleep(ms);
  }

  /** The member that a request names, or the only one. */
  member(name: string | undefined): Member {
    const found = name === undefined ? this.members[0] : this.members.find((one) => one.name === name);
    if (found === undefined) throw new Refusal(404, 'Cluster member not found');
    return found;
  }

  isOffline({ silentSince }: Member): boolean {
    return silentSince !== undefined && this.now - silentSince >= OFFLINE_AFTER_MS;
  }

  /** Most members have the database: without them nothing is answered. */
  assertQuorum(): void {
    const silent = this.members.filter(({ isSilent }) => isSilent).length;
    if (this.isClustered && silent * 2 > this.members.length)
      throw new Refusal(500, 'Failed to begin transaction: context deadline exceeded');
  }

  /** Sends a request on to its member. One that does not answer may do it later, or never. */
  async reach(member: Member): Promise<void> {
    if (!member.isSilent || !this.isClustered) return;
    if (this.isOffline(member)) throw new Refusal(503, `Cluster member "${member.name}" is offline`);
    await member.answers();
    if (this.chance.happens(0.5)) await new Promise(() => undefined);
  }

  /** A listing waits for each member, until it is offline. */
  async reachAll(): Promise<void> {
    for (const member of this.members)
      while (member.isSilent && !this.isOffline(member))
        await Promise.race([member.answers(), this.sleep(OFFLINE_AFTER_MS)]);
  }

  /** Begins something in the background, which goes on whoever waits for it. */
  begin(
    description: string,
    member: Member,
    resources: Operation['resources'],
    work: (isStill: () => void, operation: Operation) => Promise<void>,
  ): string {
    const { ends } = member;
    const operation: Operation = {
      id: this.id(),
      ...{ description, member, resources },
      createdAt: this.nowText(),
      status: 103,
      error: undefined,
    };
    this.operations.set(operation.id, operation);
    if (!this.#parts.isCalm() && this.chance.happens(ENDS))
      this.#parts.scheduler.after(this.chance.between(0, 10_000), () => this.#end(member));
    const isStill = (): void => {
      if (member.ends !== ends) throw new Interrupted();
    };
    const end = (status: number, error?: string): void => {
      if (member.ends !== ends) return;
      operation.status = status;
      operation.error = error;
      this.#parts.scheduler.after(REMEMBERED_MS, () => this.operations.delete(operation.id));
    };
    work(isStill, operation).then(
      () => end(200),
      (error: unknown) => {
        if (error instanceof Interrupted) return;
        if (!(error instanceof Refusal)) throw error;
        end(error.status, error.message);
      },
    );
    return operation.id;
  }

  /** It cannot be reached, or its daemon has ended. */
  #fellSilent(member: Member): void {
    member.silentSince = this.now;
    if (this.chance.happens(0.4)) this.#end(member);
  }

  /** A daemon ends, and another is started: what it was doing is left as it is. */
  #end(member: Member): void {
    member.ends++;
    if (member.image === 'unpacking') member.image = 'broken';
    for (const [id, operation] of this.operations)
      if (operation.member === member) this.operations.delete(id);
    for (const instance of this.instances.values()) if (instance.member === member) instance.busy = undefined;
  }
}

export function volumeAt(cluster: Cluster, member: Member, name: string): Volume | undefined {
  return cluster.volumes.find((one) => one.member === member && one.name === name);
}

/** Those that have the volume as a device. */
export function usersOf(cluster: Cluster, { name, member }: Volume): Instance[] {
  return [...cluster.instances.values()].filter(
    (one) =>
      one.member === member &&
      Object.values(one.devices).some(
        ({ type, source, pool }) => type === 'disk' && source === name && pool === POOL,
      ),
  );
}

/** The volumes that an instance has as devices. */
export function volumesOf(cluster: Cluster, { member, devices }: Instance): Volume[] {
  return Object.values(devices).flatMap(({ source }) =>
    source === undefined ? [] : (volumeAt(cluster, member, source) ?? []),
  );
}
