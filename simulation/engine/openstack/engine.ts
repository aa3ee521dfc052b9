import type { Answer, Sent } from '../../../src/drivers/kit/http-transport.ts';
import { openOpenStack } from '../../../src/drivers/openstack/open.ts';
import { openstackConfigSchema } from '../../../src/drivers/openstack/options.ts';
import { mark, readDescription } from '../../../src/drivers/openstack/translate.ts';
import type { OwnerRef, PlatformDriver } from '../../../src/orchestrator/model/platform-driver.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import { type Bytes, type Disk, Engine, type EngineParts, isOf, type Machine } from '../engine.ts';
import { Cloud } from './cloud.ts';
import type { Compute } from './compute.ts';
import { handsOn } from './hands.ts';
import { type Credential, cloudsEntry, Identity } from './identity.ts';
import type { Server, Volume } from './records.ts';
import { type RestApi, restApi } from './rest-api.ts';
import { Servers } from './servers.ts';

/** As the driver's client has it. */
const REQUEST_MS = 14_000;
const CREDENTIAL: Credential = { id: 'berth', secret: 'a secret', who: { project: 'berth', isAdmin: true } };

/** A region of an OpenStack cloud in memory, and the real driver for each server. */
export class OpenStackEngine extends Engine {
  readonly driverName = 'openstack';
  readonly hands: ReturnType<typeof handsOn>;
  readonly cloud: Cloud;
  readonly #api: RestApi;
  readonly #identity: Identity;
  readonly #hasFloating: boolean;
  readonly #bootsFromVolumes: boolean;

  constructor(parts: EngineParts) {
    super(parts);
    const { scheduler, chance, isCalm, hosts, catalog } = parts;
    this.#hasFloating = chance.happens(0.7);
    this.#bootsFromVolumes = chance.happens(0.3);
    this.cloud = new Cloud({
      scheduler,
      chance,
      isCalm,
      observe: (by) => this.observe(by),
      // Two hosts in each zone, so that servers can move.
      zones: Array.from({ length: hosts === 1 ? 2 : 2 * hosts }, (_, index) =>
        hosts === 1 ? 'nova' : `az${1 + (index % hosts)}`,
      ),
      ...(chance.happens(0.3) && { reclaimMs: 1_800_000 }),
      keepsShelved: chance.happens(0.1),
    });
    for (const offer of catalog.offers.values())
      this.cloud.flavor(offer.id, offer.vcpus, offer.memoryGb * 1_024, offer.storageGb);
    const servers = new Servers(this.cloud);
    this.#identity = new Identity(() => scheduler.now, [CREDENTIAL]);
    this.#api = restApi(this.#identity, servers);
    this.hands = handsOn(servers, this.#identity, CREDENTIAL.id);
  }

  get hosts(): readonly Compute[] {
    return this.cloud.computes;
  }

  driver(process: ServerProcess, clock: Clock): PlatformDriver {
    const { catalog, datacenter } = this.parts;
    const zones = [...new Set(this.hosts.map(({ zone }) => zone))];
    const config = openstackConfigSchema.parse({
      driver: 'openstack',
      cloud: 'simulated',
      network: 'tenants',
      ...(this.#hasFloating && { floating_network: 'public' }),
      datacenters: { [datacenter]: { zones, volume_zone: 'nova' } },
    });
    const boot = this.#bootsFromVolumes ? { boot_volume: {} } : {};
    const offers = [...catalog.offers].map(
      ([id, offer]) => [id, { ...offer, machine: { flavor: id, ...boot } }] as const,
    );
    const withFlavors = { ...catalog, offers: new Map(offers) };
    const transport = { send: (sent: Sent) => this.#send(process, sent), close: async () => undefined };
    const connection = { cloud: cloudsEntry(CREDENTIAL), transport };
    return openOpenStack(config, connection, { catalog: withFlavors, clock });
  }

  /** Sends one request, as a driver of the process does. */
  request(process: ServerProcess, method: Sent['method'], url: string, body?: object): Promise<Answer> {
    const headers = { 'x-auth-token': this.#identity.issue(CREDENTIAL).token };
    const { signal } = new AbortController();
    return this.#send(process, { method, url, headers, body: body && JSON.stringify(body), signal });
  }

  override clear(): void {
    super.clear();
    for (const compute of this.hosts) compute.isSilent = false;
    this.hands.rest();
  }

  /** Without servers that Nova could not build: they never ran, and are traces. */
  machines(): Machine[] {
    const wasBuilt = ({ vmState, launchedAt }: Server): boolean =>
      vmState !== 'error' || launchedAt !== undefined;
    return [...this.cloud.servers.values()].filter(wasBuilt).map((one) => this.#machineOf(one));
  }

  protected override observed(): Machine[] {
    return [...this.cloud.servers.values()].map((one) => this.#machineOf(one));
  }

  protected override isUp({ identity }: Machine): boolean {
    const server = this.cloud.servers.get(identity);
    return server?.isRunning === true && server.vmState !== 'rescued';
  }

  traces(id: string): string[] {
    const { servers, volumes, ports, floatingIps, images } = this.cloud;
    const isIts = (ref: OwnerRef | undefined): boolean => isOf(id, ref);
    const own = <T>(what: string, all: ReadonlyMap<string, T>, isOwn: (one: T) => boolean): string[] =>
      [...all].filter(([, one]) => isOwn(one)).map(([key]) => `${what} ${key}`);
    const described = (one: { description: string }): boolean => isIts(readDescription(one)?.ref);
    return [
      ...own('server', servers, (one) => !one.isCopy && isIts(refOf(one))),
      ...own('volume', volumes, (one) => isIts(volumeRef(one))),
      ...own('port', ports, described),
      ...own('floating IP', floatingIps, described),
      ...own('image', images, ({ name }) => isIts(name.replace(/-shelved$/, ''))),
    ];
  }

  #send(process: ServerProcess, sent: Sent): Promise<Answer> {
    const { hostname, pathname, search } = new URL(sent.url);
    const service = hostname.split('.')[0] ?? '';
    const asked = sent.method === 'GET' ? search : (sent.body ?? '').slice(0, 60);
    const line = `${sent.method} ${pathname}${pathname.endsWith('/tokens') ? '' : ` ${asked}`}`;
    const isRead = sent.method === 'GET' || service === 'keystone';
    const host = { name: service, isSilent: false };
    const command = { host, line, isRead, timeoutMs: REQUEST_MS, signal: sent.signal };
    return this.parts.commands.send(process, command, (isLate) => this.#api(sent, { process, line, isLate }));
  }

  #machineOf(server: Server): Machine {
    const { id, name, isCopy, isRunning, mappings } = server;
    return {
      host: hostOf(server),
      name,
      identity: id,
      isCopy,
      ref: refOf(server),
      power: powerOf(server),
      address: isRunning ? this.#addressOf(server) : undefined,
      disk: this.#diskOf(server),
      volumes: mappings.filter(({ isRoot }) => !isRoot).map(({ volume }) => volumeDisk(volume)),
    };
  }

  /** What it boots from; of a shelved server, its snapshot, if that is still there. */
  #rootOf({ disk, mappings, snapshot }: Server): Bytes | undefined {
    const root = mappings.find(({ isRoot }) => isRoot)?.volume.bytes;
    return disk ?? root ?? (snapshot && this.cloud.images.get(snapshot.id)?.bytes);
  }

  #diskOf(server: Server): Disk | undefined {
    const content = this.#rootOf(server)?.content;
    const ref = server.isCopy ? undefined : refOf(server);
    return content && { host: hostOf(server), name: `${server.id}-disk`, ref, content };
  }

  #addressOf(server: Server): Machine['address'] {
    const [port] = this.cloud.portsOf(server);
    if (port === undefined) return undefined;
    const floating = [...this.cloud.floatingIps.values()].find((one) => one.port_id === port.id);
    const fixed = port.fixed_ips[0]?.ip_address;
    const host = this.#hasFloating ? floating?.floating_ip_address : fixed;
    return host === undefined ? undefined : { host, port: 22 };
  }

  /** A volume that a server boots from is that server's disk. */
  protected override bytes(): Map<Bytes, Disk> {
    const { servers, volumes } = this.cloud;
    const all = new Map([...volumes.values()].map((one): [Bytes, Disk] => [one.bytes, volumeDisk(one)]));
    for (const server of servers.values()) {
      const [bytes, disk] = [this.#rootOf(server), this.#diskOf(server)];
      if (bytes !== undefined && disk !== undefined) all.set(bytes, disk);
    }
    return all;
  }

  protected override running() {
    const running = [...this.cloud.servers.values()].filter(({ isRunning }) => isRunning);
    return running.map((server) => ({
      id: server.id,
      bytes: this.#rootOf(server),
      data: () => Buffer.from(server.userData, 'base64').toString(),
    }));
  }
}

function powerOf({ vmState, task, isRunning }: Server): Machine['power'] {
  if (vmState === 'soft-delete' || /^(soft-)?deleting$/.test(task ?? '')) return 'destroying';
  return vmState === 'paused' ? 'paused' : isRunning ? 'running' : 'stopped';
}

const hostOf = ({ host }: Server): string => host?.name ?? 'no host';

function refOf({ metadata }: Server): OwnerRef | undefined {
  return metadata[mark.ref];
}

function volumeRef({ metadata }: Volume): OwnerRef | undefined {
  return metadata[mark.ref] ?? metadata[mark.bootOf];
}

function volumeDisk(volume: Volume): Disk {
  const { id, bytes } = volume;
  return { host: 'cinder', name: `${id}.volume`, ref: volumeRef(volume), content: bytes.content };
}
