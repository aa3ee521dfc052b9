import type { Flavor, Named } from '../../../src/drivers/openstack/api.ts';
import { Refusal, type SurroundingParts, Surroundings } from '../surroundings.ts';
import { Compute } from './compute.ts';
import type { FloatingIp, Image, Port, Server, Volume } from './records.ts';

const GIB = 1_024;
/** A task that takes long takes up to so many times what it takes else. */
const LONG = 12;

/** The quota of one project in Nova and Cinder; -1 means unlimited. */
const QUOTA = { instances: 20, cores: 80, ram: 200 * GIB, volumes: 20, gigabytes: 1_000 };
type Amounts = Record<keyof typeof QUOTA, number>;

/** The first three numbers of the addresses of each network. */
const PREFIXES: Record<string, string> = { tenants: '10.0.0', public: '203.0.113' };

export interface CloudParts extends SurroundingParts {
  /** The availability zone of each compute host. Default: two hosts in `nova`. */
  zones?: readonly string[];
  /** `reclaim_instance_interval`: DELETE makes a server SOFT_DELETED for so long. Default: it deletes. */
  reclaimMs?: number;
  /** Whether a server that was shelved stays on its host. Default: it is offloaded at once. */
  keepsShelved?: boolean;
}

/** One region: what its services have, and how long it takes. Names are not unique in it. */
export class Cloud extends Surroundings {
  declare readonly parts: CloudParts;
  readonly computes: readonly Compute[];
  readonly servers = new Map<string, Server>();
  readonly volumes = new Map<string, Volume>();
  readonly images = new Map<string, Image>();
  readonly ports = new Map<string, Port>();
  readonly floatingIps = new Map<string, FloatingIp>();
  readonly groups = new Map<string, Named>();
  readonly flavors = new Map<string, Flavor>();
  readonly networks: readonly (Named & { isPublic: boolean })[];
  readonly quota: Amounts = { ...QUOTA };
  /** The database of the servers does not answer, and Nova's API does. */
  isCellDown = false;
  /** The zones whose hosts build no server, and why. */
  readonly refusing = new Map<string, string>();
  /** Set by what runs servers: a host was restarted. */
  onRestart: (compute: Compute) => void = () => undefined;

  constructor(parts: CloudParts) {
    super(parts);
    const zones = parts.zones ?? ['nova', 'nova'];
    this.computes = zones.map((zone, index) => new Compute(this, `compute-${index + 1}`, zone));
    this.networks = Object.keys(PREFIXES).map((name) => ({
      id: this.id(),
      name,
      project_id: 'admin',
      isPublic: true,
      shared: name === 'tenants',
      'router:external': name === 'public',
    }));
    this.image('ubuntu-24.04');
    this.flavor('m1.small', 2, 2 * GIB, 20);
  }

  flavor(name: string, vcpus: number, ram: number, disk: number): void {
    const id = this.id();
    this.flavors.set(id, { id, name, vcpus, ram, disk, extra_specs: {} });
  }

  /** A public image, ready; with changes, another one. */
  image(name: string, changes: Partial<Image> = {}): Image {
    const image: Image = {
      id: this.id(),
      name,
      project_id: 'admin',
      isPublic: true,
      status: 'active',
      createdAt: this.now,
      ...changes,
    };
    this.images.set(image.id, image);
    return image;
  }

  /** A task that takes up to `longMs`, and mostly much less. */
  task(longMs: number): Promise<void> {
    return this.takes(longMs / LONG, longMs);
  }

  /** What Placement counts as used at a host, also by a server that may return there. */
  used(compute: Compute, resource: string): number {
    const isHere = ({ host, before }: Server): boolean => host === compute || before?.host === compute;
    const here = [...this.servers.values()].filter(isHere);
    return here.reduce((sum, one) => sum + (resourcesOf(one)[resource] ?? 0), 0);
  }

  hasRoom(compute: Compute, resources: Record<string, number>): boolean {
    return Object.entries(resources).every(
      ([name, amount]) => this.used(compute, name) + amount <= (compute.capacity[name] ?? 0),
    );
  }

  /** Nova's scheduler: the emptiest host that can take it, other than its own. */
  schedule(server: Server): Compute | undefined {
    const able = this.computes.filter(
      (one) =>
        one !== server.host &&
        one.isUp &&
        !one.isDisabled &&
        (server.zone === undefined || server.zone === one.zone) &&
        this.hasRoom(one, resourcesOf(server)),
    );
    return able.sort((a, b) => this.used(a, 'MEMORY_MB') - this.used(b, 'MEMORY_MB'))[0];
  }

  /** The first address of the network that is free. @throws {Refusal} 404 */
  address(networkId: unknown): string {
    const prefix = PREFIXES[this.networks.find(({ id }) => id === networkId)?.name ?? ''];
    if (prefix === undefined) throw new Refusal(404, `Network ${networkId} could not be found.`);
    const fixed = [...this.ports.values()].map(({ fixed_ips: [first] }) => first?.ip_address);
    const floating = [...this.floatingIps.values()].map((one) => one.floating_ip_address);
    const taken = new Set([...fixed, ...floating]);
    let last = 10;
    while (taken.has(`${prefix}.${last}`)) last++;
    return `${prefix}.${last}`;
  }

  portsOf({ id }: Server): Port[] {
    return [...this.ports.values()].filter(({ device_id: device }) => device === id);
  }

  /** What the project has of each quota. A server that is shelved or in ERROR counts. */
  usage(project: string): Amounts {
    const sum = <T extends { project_id: string }>(
      all: ReadonlyMap<string, T>,
      amount: (one: T) => number = () => 1,
    ): number => {
      const own = [...all.values()].filter((one) => one.project_id === project);
      return own.reduce((total, one) => total + amount(one), 0);
    };
    return {
      instances: sum(this.servers),
      cores: sum(this.servers, ({ flavor }) => flavor.vcpus),
      ram: sum(this.servers, ({ flavor }) => flavor.ram),
      volumes: sum(this.volumes),
      gigabytes: sum(this.volumes, ({ size }) => size),
    };
  }

  /** @throws {Refusal} with the status of the service, if the project may not have so much more */
  assertQuota(project: string, status: 403 | 413, more: Partial<Amounts>): void {
    const after = this.usage(project);
    for (const name of Object.keys(more) as (keyof Amounts)[]) {
      after[name] += more[name] ?? 0;
      // Cinder's words for it are others.
      const words = status === 413 ? 'VolumeLimitExceeded:' : 'Quota exceeded for';
      if (this.quota[name] >= 0 && after[name] > this.quota[name])
        throw new Refusal(status, `${words} ${name}`);
    }
  }
}

/** What Placement counts for a server. The root disk of one that boots from a volume is not counted. */
function resourcesOf({ flavor, isVolumeBacked }: Server): Record<string, number> {
  const { vcpus, ram, disk } = flavor;
  return { VCPU: vcpus, MEMORY_MB: ram, DISK_GB: isVolumeBacked ? 0 : disk };
}
