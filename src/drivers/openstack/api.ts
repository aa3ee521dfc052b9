import type { Call } from '../../orchestrator/model/platform-driver.ts';
import type { CloudClient, Json, Query, Removal } from './client.ts';
import { unlessGone, unlessWithheld } from './errors.ts';
import { type Service, toHost } from './session.ts';

export interface Server {
  id: string;
  name: string;
  status: string;
  /** ISO 8601. */
  created: string;
  /** When its state last changed. */
  updated?: string;
  /** Absent while the cell of the server is down. */
  metadata?: Readonly<Record<string, string>>;
  tags?: readonly string[];
  locked?: boolean;
  fault?: { message?: string };
  'OS-EXT-STS:task_state'?: string | null;
  /** 0 none, 1 running, 3 paused, 4 shut down, 6 crashed, 7 suspended. */
  'OS-EXT-STS:power_state'?: number;
  'OS-EXT-AZ:availability_zone'?: string;
  'OS-SRV-USG:launched_at'?: string | null;
}

export interface Port {
  id: string;
  name: string;
  description: string;
  /** The server that it is plugged into, or ''. */
  device_id: string;
  created_at?: string;
  fixed_ips: readonly { ip_address: string }[];
}

export interface FloatingIp {
  id: string;
  description: string;
  floating_ip_address: string;
  port_id: string | null;
}

export interface Volume {
  id: string;
  name: string;
  status: string;
  /** GiB. */
  size: number;
  /** UTC, without its letter. */
  created_at: string;
  updated_at?: string | null;
  metadata: Readonly<Record<string, string>>;
  attachments: readonly { server_id: string; attachment_id: string }[];
}

export interface Image {
  id: string;
  name: string;
  status: string;
  owner: string;
  visibility: string;
  instance_uuid?: string;
  created_at?: string;
}

export interface Flavor {
  id: string;
  name: string;
  vcpus: number;
  /** MiB. */
  ram: number;
  /** GiB. */
  disk: number;
  /** GiB. */
  'OS-FLV-EXT-DATA:ephemeral'?: number;
  /** MiB, or '' for none. */
  swap?: number | '';
  extra_specs?: Readonly<Record<string, string>>;
}

export interface Zone {
  name: string;
  /** Its name as a host of Berth. */
  host: string;
  isAvailable: boolean;
  /** Names of its compute hosts. Undefined if this project may not see them. */
  hosts: readonly string[] | undefined;
}

export interface Named {
  id: string;
  name: string;
  description?: string;
  project_id: string;
  shared?: boolean;
  'router:external'?: boolean;
  /** Of a security group. */
  security_group_rules?: readonly { direction: string }[];
}

/** How much of each quota is left, by the operator's word for it. Undefined for no limit. */
export type QuotaLeft = Readonly<Record<string, number | undefined>>;

/** The requests of the driver. @throws as {@link CloudClient} */
export class CloudApi {
  readonly client: CloudClient;
  readonly #call: Call | undefined;

  /** `call`: the limits of changes. Absent for reads, or when a person tries the driver. */
  constructor(client: CloudClient, call?: Call) {
    this.client = client;
    this.#call = call;
  }

  /** `kind` is the object's name in the request and in the answer. */
  async make<T>(service: Service, path: string, kind: string, object: object): Promise<T> {
    const options = { body: { [kind]: object }, call: this.#call };
    return (await this.client.send('POST', service, path, options))[kind] as T;
  }

  async update<T>(service: Service, path: string, kind: string, object: object): Promise<T> {
    const options = { body: { [kind]: object }, call: this.#call };
    return (await this.client.send('PUT', service, path, options))[kind] as T;
  }

  /** Adds to the metadata of a server or a volume. */
  async addMetadata(
    service: 'compute' | 'volume',
    path: string,
    metadata: Record<string, string>,
  ): Promise<void> {
    await this.make(service, `${path}/metadata`, 'metadata', metadata);
  }

  /** An action on a server or a volume. */
  act(service: 'compute' | 'volume', path: string, action: object): Promise<Json> {
    return this.client.send('POST', service, `${path}/action`, { body: action, call: this.#call });
  }

  remove(service: Service, path: string, reason: Removal): Promise<Json> {
    return this.client.send('DELETE', service, path, { ...reason, call: this.#call });
  }

  servers(query: Query = {}): Promise<Server[]> {
    return this.client.list('compute', '/servers/detail', 'servers', query);
  }

  async server(id: string): Promise<Server | undefined> {
    const found = await unlessGone(this.client.get('compute', `/servers/${id}`));
    return found?.['server'] as Server | undefined;
  }

  async ports(query: Query = {}): Promise<Port[]> {
    return this.client.list('network', '/ports', 'ports', { ...query, ...(await this.#ofProject()) });
  }

  async floatingIps(): Promise<FloatingIp[]> {
    return this.client.list('network', '/floatingips', 'floatingips', await this.#ofProject());
  }

  volumes(query: Query = {}): Promise<Volume[]> {
    return this.client.list('volume', '/volumes/detail', 'volumes', query);
  }

  snapshots(query: Query): Promise<{ id: string; name: string }[]> {
    return this.client.list('volume', '/snapshots', 'snapshots', query);
  }

  images(query: Query): Promise<Image[]> {
    return this.client.list('image', '/images', 'images', query);
  }

  /**
   * The image with that id or name; of several with one name the newest. By name only a public image or one of the project:
   * an administrator is shown those of strangers too.
   */
  async image(idOrName: string): Promise<Image | undefined> {
    const { id: project } = (await this.client.session()).project;
    const byId = isUuid(idOrName) ? await this.images({ id: idOrName }) : [];
    const byName = await this.images({ name: idOrName });
    const trusted = byName.filter(({ owner, visibility }) => visibility === 'public' || owner === project);
    return [...byId, ...trusted]
      .filter(({ status }) => status === 'active')
      .sort((a, b) => (b.created_at ?? '').localeCompare(a.created_at ?? ''))[0];
  }

  flavors(): Promise<Flavor[]> {
    return this.client.list('compute', '/flavors/detail', 'flavors');
  }

  /** The network or security group as {@link allNamed}. Undefined if there is none, or several with that name. */
  async named(kind: 'networks' | 'security-groups', idOrName: string): Promise<Named | undefined> {
    const [first, ...others] = await this.allNamed(kind, idOrName);
    return others.length === 0 ? first : undefined;
  }

  /**
   * Networks or security groups by id or name, of the project, shared or external. An administrator is shown those of
   * strangers too.
   */
  async allNamed(kind: 'networks' | 'security-groups', idOrName: string): Promise<Named[]> {
    const { id: project } = (await this.client.session()).project;
    const key = kind.replace('-', '_');
    const all = await this.client.list<Named>('network', `/${kind}`, key);
    const usable = all.filter((one) => one.project_id === project || one.shared || one['router:external']);
    const byId = usable.filter(({ id }) => id === idOrName);
    return byId.length > 0 ? byId : usable.filter(({ name }) => name === idOrName);
  }

  /** Zones of compute hosts, with their hosts if this project may see them. */
  async zones(): Promise<Zone[]> {
    const path = '/os-availability-zone';
    const session = await this.client.session();
    const detailed = await unlessWithheld(this.client.get('compute', `${path}/detail`));
    const body = detailed ?? (await this.client.get('compute', path));
    const found = body['availabilityZoneInfo'] as {
      zoneName: string;
      zoneState: { available: boolean };
      hosts: Record<string, Json> | null;
    }[];
    return found
      .filter(({ hosts }) => hosts === null || Object.values(hosts).some((of) => 'nova-compute' in of))
      .map(({ zoneName, zoneState, hosts }) => ({
        name: zoneName,
        host: toHost(zoneName, session),
        isAvailable: zoneState.available,
        hosts: hosts === null ? undefined : Object.keys(hosts).filter((name) => isUp(hosts[name] ?? {})),
      }));
  }

  async quotaLeft(): Promise<QuotaLeft> {
    const { project } = await this.client.session();
    const [compute, network, volume] = await Promise.all([
      this.client.get('compute', '/limits'),
      this.client.get('network', `/quotas/${project.id}/details.json`),
      this.client.get('volume', '/limits'),
    ]);
    const left = (max = -1, used = 0) => (max < 0 ? undefined : Math.max(0, max - used));
    const absolute = ({ limits }: Json, max: string, used: string) => {
      const of = (limits as { absolute?: Record<string, number> } | undefined)?.absolute;
      return left(of?.[max], of?.[used]);
    };
    const neutron = (name: string) => {
      const of = (network['quota'] as Record<string, Record<string, number>> | undefined)?.[name];
      return left(of?.['limit'], (of?.['used'] ?? 0) + (of?.['reserved'] ?? 0));
    };
    return {
      instances: absolute(compute, 'maxTotalInstances', 'totalInstancesUsed'),
      cores: absolute(compute, 'maxTotalCores', 'totalCoresUsed'),
      RAM: absolute(compute, 'maxTotalRAMSize', 'totalRAMUsed'),
      ports: neutron('port'),
      'floating IPs': neutron('floatingip'),
      volumes: absolute(volume, 'maxTotalVolumes', 'totalVolumesUsed'),
      'gigabytes of volumes': absolute(volume, 'maxTotalVolumeGigabytes', 'totalGigabytesUsed'),
    };
  }

  /** Neutron shows an administrator the ports of all projects. */
  async #ofProject(): Promise<{ project_id: string }> {
    return { project_id: (await this.client.session()).project.id };
  }
}

function isUp(services: Json): boolean {
  const compute = services['nova-compute'] as { active?: boolean; available?: boolean } | undefined;
  return compute?.active === true && compute.available === true;
}

function isUuid(text: string): boolean {
  return /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/.test(text);
}
