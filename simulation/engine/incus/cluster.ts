import { type Bytes, type Content, FULL, READ_ONLY } from '../engine.ts';
import { Refusal, SilentHost, type SurroundingParts, Surroundings } from '../surroundings.ts';

export const PROJECT = 'berth';
export const POOL = 'default';
export const NETWORK = 'incusbr0';
export const EMPTY: Content = { guest: undefined, written: [] };
/** `cluster.offline_threshold`. */
const OFFLINE_AFTER_MS = 20_000;
/** Incus forgets an operation so long after its end. */
const REMEMBERED_MS = 5_000;
/** How often a daemon ends while it does something in the background. */
const ENDS = 0.01;

/** The daemon that was at it has ended. */
export class Interrupted extends Error {}

export type Config = Record<string, string>;
export type Devices = Record<string, Record<string, string>>;

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
export class Member extends SilentHost {
  readonly name: string;
  /** Where tenants reach its forwarded ports. */
  readonly publicIp: string;
  image: 'missing' | 'unpacking' | 'whole' | 'broken' = 'missing';
  /** How often its daemon has ended. */
  ends = 0;
  /** Why it makes no instances. */
  refusal: string | undefined;
  readonly #fellSilent: (member: Member) => number;

  constructor(name: string, publicIp: string, fellSilent: (member: Member) => number) {
    super();
    this.name = name;
    this.publicIp = publicIp;
    this.#fellSilent = fellSilent;
  }

  /** @throws {Refusal} if its pool takes no writes */
  write(): void {
    if (this.refusal === FULL || this.refusal === READ_ONLY) throw new Refusal(500, this.refusal);
  }

  protected override fellSilent(): number {
    return this.#fellSilent(this);
  }
}

interface Parts extends SurroundingParts {
  members: number;
  hasForwards: boolean;
}

/** What Incus has, and how long it takes. */
export class Cluster extends Surroundings {
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

  constructor(parts: Parts) {
    super(parts);
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

  nowText(): string {
    return new Date(this.now).toISOString();
  }

  /** Throws now and then, as what an engine does may fail for reasons of its own. */
  mayFail(what: string): void {
    if (this.fails()) throw new Refusal(500, what);
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
    if (this.fails(ENDS)) this.parts.scheduler.after(this.chance.between(0, 10_000), () => this.#end(member));
    const isStill = (): void => {
      if (member.ends !== ends) throw new Interrupted();
    };
    const end = (status: number, error?: string): void => {
      if (member.ends !== ends) return;
      operation.status = status;
      operation.error = error;
      this.parts.scheduler.after(REMEMBERED_MS, () => this.operations.delete(operation.id));
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
  #fellSilent(member: Member): number {
    if (this.chance.happens(0.4)) this.#end(member);
    return this.now;
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
