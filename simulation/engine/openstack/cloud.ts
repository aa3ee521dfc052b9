import type { Scheduler } from '../../../test/support/time/scheduler.ts';
import type { Chance } from '../../kernel/chance.ts';
import type { Doer } from '../engine.ts';
import { Refusal } from './api.ts';
import { Compute, type Inventory } from './compute.ts';
import type {
  Bytes,
  Flavor,
  FloatingIp,
  Image,
  Keypair,
  Network,
  Port,
  SecurityGroup,
  Server,
  Volume,
} from './records.ts';

/** How often what a service does in the background fails by itself. */
const FAILURES = 0.01;
const GIB = 1_024;

/** What Nova, Neutron and Cinder allow one project; -1 is no limit. */
export const QUOTA = {
  instances: 20,
  cores: 80,
  ram: 200 * GIB,
  key_pairs: 100,
  port: 60,
  floatingip: 20,
  security_group: 10,
  volumes: 20,
  gigabytes: 1_000,
};

export interface CloudParts {
  scheduler: Scheduler;
  chance: Chance;
  /** Whether nothing fails by itself. */
  isCalm: () => boolean;
  /** Something has changed. */
  observe: (by: Doer) => void;
  /** The availability zone of each compute host. Default: two hosts in `nova`. */
  zones?: readonly string[];
  /** What each compute host has, beside the defaults. */
  inventories?: Readonly<Record<string, number>>;
  devices?: Readonly<Record<string, number>>;
  /** `reclaim_instance_interval`: DELETE makes a server SOFT_DELETED for so long. Default: it deletes. */
  reclaimMs?: number;
  /** Whether a server that was shelved stays on its host. Default: it is offloaded at once. */
  keepsShelved?: boolean;
  region?: string;
}

/** One region: what its services have, and how long it takes. Names are not unique in it. */
export class Cloud {
  readonly region: string;
  readonly computes: readonly Compute[];
  readonly servers = new Map<string, Server>();
  readonly volumes = new Map<string, Volume>();
  readonly images = new Map<string, Image>();
  readonly ports = new Map<string, Port>();
  readonly floatingIps = new Map<string, FloatingIp>();
  readonly groups = new Map<string, SecurityGroup>();
  readonly keypairs = new Map<string, Keypair>();
  readonly flavors = new Map<string, Flavor>();
  readonly networks: readonly Network[];
  readonly quota: Record<keyof typeof QUOTA, number> = { ...QUOTA };
  /** In Placement, by server; what a migration holds on its old host is under `ID/before`. */
  readonly allocations = new Map<string, { compute: Compute; resources: Record<string, number> }>();
  /** Disks that a host still has of servers that were deleted while it was down. */
  readonly leftBehind = new Map<Bytes, Server>();
  readonly parts: CloudParts;
  /** The database of the servers does not answer, and Nova's API does. */
  isCellDown = false;
  /** Set by what runs servers: a host was restarted. */
  onRestart: (compute: Compute) => void = () => undefined;
  #ids = 0;

  constructor(parts: CloudParts) {
    this.parts = parts;
    this.region = parts.region ?? 'RegionOne';
    const zones = parts.zones ?? ['nova', 'nova'];
    this.computes = zones.map((zone, index) => this.#compute(`compute-${index + 1}`, zone));
    this.networks = [this.#network('tenants', false, '10.0.0'), this.#network('public', true, '203.0.113')];
    this.image('ubuntu-24.04');
    this.flavor('m1.small', 2, 2 * GIB, 20);
  }

  get chance(): Chance {
    return this.parts.chance;
  }

  get now(): number {
    return this.parts.scheduler.now;
  }

  id(): string {
    return `00000000-0000-4000-8000-${String(++this.#ids).padStart(12, '0')}`;
  }

  flavor(
    name: string,
    vcpus: number,
    ram: number,
    disk: number,
    extraSpecs: Flavor['extraSpecs'] = {},
  ): Flavor {
    const flavor = { id: this.id(), name, vcpus, ram, disk, extraSpecs };
    this.flavors.set(flavor.id, flavor);
    return flavor;
  }

  /** A public image, ready. */
  image(name: string): Image {
    const image: Image = {
      ...{ id: this.id(), name, project: 'admin', isPublic: true, status: 'active', minDisk: 0 },
      ...{ createdAt: this.now, properties: {}, bytes: undefined },
    };
    this.images.set(image.id, image);
    return image;
  }

  observe(by: Doer): void {
    this.parts.observe(by);
  }

  sleep(ms: number): Promise<void> {
    return this.parts.scheduler.sleep(ms);
  }

  /** Mostly short, and long now and then. */
  async takes(shortMs: number, longMs: number): Promise<void> {
    const isLong = !this.parts.isCalm() && this.chance.happens(0.08);
    await this.sleep(isLong ? this.chance.between(shortMs, longMs) : this.chance.between(0, shortMs));
  }

  /** Whether something fails now for reasons of its own. */
  fails(rate = FAILURES): boolean {
    return !this.parts.isCalm() && this.chance.happens(rate);
  }

  /** What Placement counts for a server of the flavor. The root disk of one that boots from a volume is not counted. */
  resourcesOf({ vcpus, ram, disk, extraSpecs }: Flavor, isVolumeBacked: boolean): Record<string, number> {
    const resources: Record<string, number> = { VCPU: vcpus, MEMORY_MB: ram };
    if (!isVolumeBacked && disk > 0) resources['DISK_GB'] = disk;
    for (const [key, amount] of Object.entries(extraSpecs))
      if (key.startsWith('resources:')) resources[key.slice('resources:'.length)] = Number(amount);
    return resources;
  }

  used({ id }: Compute, resource: string): number {
    const own = [...this.allocations.values()].filter(({ compute }) => compute.id === id);
    return own.reduce((sum, { resources }) => sum + (resources[resource] ?? 0), 0);
  }

  fits(compute: Compute, resources: Record<string, number>, traits: readonly string[] = []): boolean {
    const hasRoom = ([name, amount]: [string, number]): boolean => {
      const inventory = compute.inventories[name];
      return inventory !== undefined && this.used(compute, name) + amount <= capacityOf(inventory);
    };
    return traits.every((one) => compute.traits.includes(one)) && Object.entries(resources).every(hasRoom);
  }

  /** Nova's scheduler: the emptiest host that can take it. */
  schedule(server: Server, flavor: Flavor, without?: Compute, name?: string): Compute | undefined {
    const resources = this.resourcesOf(flavor, server.isVolumeBacked);
    const traits = Object.entries(flavor.extraSpecs)
      .filter(([key, value]) => key.startsWith('trait:') && value === 'required')
      .map(([key]) => key.slice('trait:'.length));
    const able = this.computes.filter(
      (one) =>
        one !== without &&
        (name === undefined || one.name === name) &&
        one.isUp &&
        !one.isDisabled &&
        (server.zone === undefined || server.zone === one.zone) &&
        this.fits(one, resources, traits) &&
        devicesOf(flavor).every(([alias, count]) => this.#freeDevices(one, alias) >= count),
    );
    return able.sort((a, b) => this.used(a, 'MEMORY_MB') - this.used(b, 'MEMORY_MB'))[0];
  }

  allocate(server: Server, compute: Compute, flavor: Flavor): void {
    this.allocations.set(server.id, { compute, resources: this.resourcesOf(flavor, server.isVolumeBacked) });
  }

  /** The first address of the network that is free. @throws {Refusal} if there is none */
  address(network: Network): string {
    const taken = new Set([
      ...[...this.ports.values()].map(({ address }) => address),
      ...[...this.floatingIps.values()].map(({ address }) => address),
    ]);
    for (let last = 10; last < 10 + network.size; last++) {
      const address = `${network.prefix}.${last}`;
      if (!taken.has(address)) return address;
    }
    throw new Refusal(
      409,
      `No more IP addresses available on network ${network.id}.`,
      'IpAddressGenerationFailure',
    );
  }

  portsOf({ id }: Server): Port[] {
    return [...this.ports.values()].filter(({ device }) => device === id);
  }

  floatingIpOf({ id }: Port): FloatingIp | undefined {
    return [...this.floatingIps.values()].find(({ port }) => port === id);
  }

  /** A port goes, and a floating IP that it had is free and still there. */
  removePort({ id }: Port): void {
    this.ports.delete(id);
    for (const one of this.floatingIps.values()) if (one.port === id) one.port = null;
  }

  #freeDevices(compute: Compute, alias: string): number {
    const holders = [...this.servers.values()].filter((one) => one.host === compute);
    const held = holders.flatMap(({ flavor }) => devicesOf(flavor)).filter(([name]) => name === alias);
    return (compute.devices[alias] ?? 0) - held.reduce((sum, [, count]) => sum + count, 0);
  }

  #network(name: string, isExternal: boolean, prefix: string): Network {
    return { id: this.id(), name, isExternal, prefix, size: 200, subnet: this.id() };
  }

  #compute(name: string, zone: string): Compute {
    const { inventories = {}, devices = {} } = this.parts;
    const totals = { VCPU: 32, MEMORY_MB: 128 * GIB, DISK_GB: 2_000, ...inventories };
    const toInventory = ([resource, total]: [string, number]): [string, Inventory] => [
      resource,
      { total, reserved: resource === 'MEMORY_MB' ? 512 : 0, allocationRatio: resource === 'VCPU' ? 4 : 1 },
    ];
    return new Compute({
      ...{ id: this.id(), name, zone, traits: ['COMPUTE_NODE', 'HW_CPU_X86_AVX2'], devices: { ...devices } },
      inventories: Object.fromEntries(Object.entries(totals).map(toInventory)),
      now: () => this.now,
      fellSilent: (compute) => {
        compute.hasEnded = this.chance.happens(0.4);
        if (compute.hasEnded) compute.ends++;
      },
      cameBack: (compute) => this.onRestart(compute),
    });
  }
}

export function capacityOf({ total, reserved, allocationRatio }: Inventory): number {
  return Math.floor((total - reserved) * allocationRatio);
}

/** The devices that a flavor asks for, as `gpu:1,nic:2` in `pci_passthrough:alias`. */
function devicesOf({ extraSpecs }: Flavor): [string, number][] {
  const aliases = extraSpecs['pci_passthrough:alias'];
  if (aliases === undefined) return [];
  return aliases.split(',').map((one) => {
    const [alias = '', count = '1'] = one.split(':');
    return [alias, Number(count)];
  });
}
