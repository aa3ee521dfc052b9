import { openOpenStack } from '../../../src/drivers/openstack/open.ts';
import { openstackConfigSchema } from '../../../src/drivers/openstack/options.ts';
import { mark, readDescription } from '../../../src/drivers/openstack/translate.ts';
import type { Answer, Sent, Transport } from '../../../src/drivers/openstack/transport.ts';
import type { Catalog, Offer } from '../../../src/orchestrator/catalog/catalog.ts';
import type { OwnerRef, PlatformDriver } from '../../../src/orchestrator/model/platform-driver.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import type { Scheduler } from '../../../test/support/time/scheduler.ts';
import type { Chance } from '../../kernel/chance.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import type { Commands } from '../commands.ts';
import {
  type Disk,
  type Doer,
  type Engine,
  type EngineObserver,
  type Guest,
  isOf,
  type Machine,
  type RunningGuest,
} from '../engine.ts';
import { guestOf } from '../guest.ts';
import { Cloud } from './cloud.ts';
import type { Compute } from './compute.ts';
import { CloudHands } from './hands.ts';
import { type Credential, Identity, KEYSTONE } from './identity.ts';
import type { Bytes, Server, Volume } from './records.ts';
import { RestApi } from './rest-api.ts';

/** As the driver's client has it. */
const REQUEST_MS = 14_000;
const TOKEN_MS = 1_800_000;
const CREDENTIAL: Credential = {
  id: 'berth',
  secret: 'a secret of the simulation',
  who: { project: 'berth', user: 'berth', isAdmin: true },
};

/** What the engine of a run is made from. */
interface Parts {
  hosts: number;
  datacenter: string;
  catalog: Catalog;
  scheduler: Scheduler;
  chance: Chance;
  commands: Commands;
  observer: EngineObserver;
  isCalm: () => boolean;
}

interface Boot {
  guest: Guest;
  readyAt: number;
}

/** A region of an OpenStack cloud in memory, and the real driver for each server. */
export class OpenStackEngine implements Engine {
  readonly driverName = 'openstack';
  readonly hands: CloudHands;
  readonly cloud: Cloud;
  readonly #parts: Parts;
  readonly #api: RestApi;
  readonly #identity: Identity;
  readonly #hasFloating: boolean;
  readonly #bootsFromVolumes: boolean;
  readonly #boots = new Map<string, Boot>();
  #machines = new Map<string, Machine>();
  #disks = new Map<Bytes, Disk>();

  constructor(parts: Parts) {
    this.#parts = parts;
    const { scheduler, chance, isCalm, hosts, catalog } = parts;
    this.#hasFloating = chance.happens(0.7);
    this.#bootsFromVolumes = chance.happens(0.3);
    this.cloud = new Cloud({
      ...{ scheduler, chance, isCalm, observe: (by) => this.#observe(by) },
      // Two hosts in each zone, so that servers can move.
      zones: Array.from({ length: hosts === 1 ? 2 : 2 * hosts }, (_, index) =>
        hosts === 1 ? 'nova' : `az${1 + (index % hosts)}`,
      ),
      ...(chance.happens(0.3) && { reclaimMs: 1_800_000 }),
      keepsShelved: chance.happens(0.1),
    });
    for (const offer of catalog.offers.values())
      this.cloud.flavor(offer.id, offer.vcpus, offer.memoryGb * 1_024, offer.storageGb);
    const regions = [this.cloud.region];
    this.#identity = new Identity({
      now: () => scheduler.now,
      tokenMs: TOKEN_MS,
      credentials: [CREDENTIAL],
      regions,
    });
    this.#api = new RestApi(this.#identity, [this.cloud]);
    const { compute, servers } = this.#api.regionOf(this.cloud);
    this.hands = new CloudHands({
      cloud: this.cloud,
      compute,
      servers,
      identity: this.#identity,
      credential: CREDENTIAL.id,
    });
  }

  get hosts(): readonly Compute[] {
    return this.cloud.computes;
  }

  driver(process: ServerProcess, clock: Clock): PlatformDriver {
    const { catalog, datacenter } = this.#parts;
    const zones = [...new Set(this.hosts.map(({ zone }) => zone))];
    const config = openstackConfigSchema.parse({
      ...{ driver: 'openstack', cloud: 'simulated', network: 'tenants' },
      ...(this.#hasFloating && { floating_network: 'public' }),
      datacenters: { [datacenter]: { zones, volume_zone: 'nova' } },
    });
    const withFlavors: Catalog = {
      ...catalog,
      offers: new Map([...catalog.offers].map(([id, offer]) => [id, this.#withMachine(offer)])),
    };
    const { id, secret } = CREDENTIAL;
    const auth = {
      identity: { methods: ['application_credential'], application_credential: { id, secret } },
    };
    const cloud = {
      ...{
        authUrl: KEYSTONE,
        auth,
        project: undefined,
        region: undefined,
        interface: 'public',
        ca: undefined,
        verify: true,
      },
      ...{ file: 'clouds.yaml', isReadableByOthers: false },
    };
    const connection = { cloud, transport: this.#transport(process) };
    return openOpenStack(config, connection, { catalog: withFlavors, clock });
  }

  /** Sends one request, as a driver of the process does. */
  request(process: ServerProcess, method: Sent['method'], url: string, body?: object): Promise<Answer> {
    const { id, secret } = CREDENTIAL;
    const { token } = this.#identity.issue({ identity: { application_credential: { id, secret } } });
    const headers = { 'x-auth-token': token };
    const { signal } = new AbortController();
    return this.#send(process, { method, url, headers, body: body && JSON.stringify(body), signal });
  }

  died(process: ServerProcess): void {
    this.#parts.commands.died(process);
  }

  clear(): void {
    this.#parts.commands.clear();
    for (const compute of this.hosts) compute.isSilent = false;
    this.hands.rest();
  }

  /** Without servers that Nova could not build: they never ran, and are traces. */
  machines(): Machine[] {
    const wasBuilt = ({ vmState, launchedAt }: Server): boolean =>
      vmState !== 'error' || launchedAt !== undefined;
    return [...this.cloud.servers.values()].filter(wasBuilt).map((one) => this.#machineOf(one));
  }

  disks(): Disk[] {
    return this.#bytes().map(([, disk]) => disk);
  }

  traces(id: string): string[] {
    const { servers, volumes, ports, floatingIps, images, leftBehind } = this.cloud;
    const isIts = (ref: OwnerRef | undefined): boolean => isOf(id, ref);
    const described = (one: { description: string }): boolean => isIts(readDescription(one)?.ref);
    const snapshots = [...images.values()].filter(
      ({ name, bytes }) =>
        isIts(name.replace(/-shelved$/, '')) && (bytes !== undefined || name.endsWith('-shelved')),
    );
    return [
      ...[...servers.values()]
        .filter((one) => !one.isCopy && isIts(refOf(one)))
        .map((one) => `server ${one.id} ${one.vmState}`),
      ...[...volumes.values()]
        .filter((one) => isIts(volumeRef(one)))
        .map((one) => `volume ${one.id} ${one.status}`),
      ...[...ports.values()].filter(described).map((one) => `port ${one.id}`),
      ...[...floatingIps.values()].filter(described).map((one) => `floating IP ${one.address}`),
      ...snapshots.map((one) => `image ${one.id} ${one.name}`),
      ...[...leftBehind.values()].filter((one) => isIts(refOf(one))).map((one) => `the disk of ${one.id}`),
    ];
  }

  guestAt(host: string, port: number): RunningGuest | undefined {
    if (port !== 22) return undefined;
    const isHere = (one: Server): boolean => one.isRunning && this.#addressOf(one)?.host === host;
    const server = [...this.cloud.servers.values()].find(isHere);
    const boot = server && this.#boots.get(server.id);
    return server && boot && { machine: this.#machineOf(server), ...boot };
  }

  write({ host, name }: Disk, text: string): void {
    const [bytes] = this.#bytes().find(([, disk]) => disk.host === host && disk.name === name) ?? [];
    if (bytes === undefined) return;
    bytes.content = { ...bytes.content, written: [...bytes.content.written, text] };
    this.#observe('a person');
  }

  #withMachine(offer: Offer): Offer {
    const machine = { flavor: offer.id, ...(this.#bootsFromVolumes && { boot_volume: {} }) };
    return { ...offer, machine };
  }

  #transport(process: ServerProcess): Transport {
    return { send: (sent) => this.#send(process, sent), close: async () => undefined };
  }

  #send(process: ServerProcess, sent: Sent): Promise<Answer> {
    const { hostname, pathname, search } = new URL(sent.url);
    const service = hostname.split('.')[0] ?? '';
    const asked = sent.method === 'GET' ? search : (sent.body ?? '').slice(0, 60);
    const line = `${sent.method} ${pathname}${pathname.endsWith('/tokens') ? '' : ` ${asked}`}`;
    const isRead = sent.method === 'GET' || service === 'keystone';
    const command = {
      host: { name: service, isSilent: false },
      line,
      isRead,
      timeoutMs: REQUEST_MS,
      signal: sent.signal,
    };
    return this.#parts.commands.send(process, command, () => this.#api.answer(sent, { process, line }));
  }

  #machineOf(server: Server): Machine {
    const disk = diskOf(server) ?? this.#snapshotDisk(server);
    return {
      ...{
        host: server.host?.name ?? 'no host',
        name: server.name,
        identity: server.id,
        isCopy: server.isCopy,
      },
      ref: refOf(server),
      power: powerOf(server),
      address: server.isRunning ? this.#addressOf(server) : undefined,
      ...{
        disk,
        volumes: server.mappings.filter(({ isRoot }) => !isRoot).map(({ volume }) => volumeDisk(volume)),
      },
    };
  }

  #snapshotDisk(server: Server): Disk | undefined {
    const bytes = this.cloud.images.get(server.shelvedImage ?? '')?.bytes;
    return bytes && { host: 'glance', name: `${server.id}-disk`, ref: refOf(server), content: bytes.content };
  }

  #addressOf(server: Server): Machine['address'] {
    const [port] = this.cloud.portsOf(server);
    if (port === undefined) return undefined;
    const host = this.#hasFloating ? this.cloud.floatingIpOf(port)?.address : port.address;
    return host === undefined ? undefined : { host, port: 22 };
  }

  #bytes(): [Bytes, Disk][] {
    const { servers, volumes, images, leftBehind } = this.cloud;
    const all: [Bytes | undefined, Disk | undefined][] = [
      ...[...servers.values()].flatMap((one): [Bytes | undefined, Disk | undefined][] => [
        [rootOf(one), diskOf(one)],
        [images.get(one.shelvedImage ?? '')?.bytes, this.#snapshotDisk(one)],
      ]),
      ...[...leftBehind].map(([bytes, one]): [Bytes, Disk | undefined] => [bytes, diskOf(one)]),
      ...[...volumes.values()].map((one): [Bytes, Disk] => [one.bytes, volumeDisk(one)]),
    ];
    const found = all.filter((pair): pair is [Bytes, Disk] => pair[0] !== undefined && pair[1] !== undefined);
    // A volume that a server boots from is that server's disk.
    return [...new Map(found.toReversed())].toReversed();
  }

  /** Tells of what has changed since it was looked at last. */
  #observe(by: Doer): void {
    const { observer } = this.#parts;
    this.#bootGuests();
    const [machinesBefore, disksBefore] = [this.#machines, this.#disks];
    this.#machines = new Map([...this.cloud.servers.values()].map((one) => [one.id, this.#machineOf(one)]));
    this.#disks = new Map(this.#bytes());
    for (const [identity, machine] of machinesBefore)
      if (!this.#machines.has(identity)) observer.changed({ what: 'machine removed', machine }, by);
    for (const [bytes, before] of disksBefore) {
      const disk = this.#disks.get(bytes);
      if (disk === undefined) observer.changed({ what: 'disk removed', disk: before }, by);
      else if (before.content.written.some((text) => !disk.content.written.includes(text)))
        observer.changed({ what: 'disk replaced', before, disk }, by);
    }
    for (const [id, machine] of this.#machines) {
      const server = this.cloud.servers.get(id);
      const runsItsOwn = server?.isRunning === true && server.vmState !== 'rescued';
      if (!runsItsOwn) this.#boots.delete(id);
      else if (!this.#boots.has(id) && this.#isUp(machine))
        observer.changed({ what: 'machine booted', machine }, by);
    }
  }

  /** At its first boot a guest takes its keys from its user data, and keeps them on its disk. */
  #bootGuests(): void {
    for (const server of this.cloud.servers.values()) {
      const bytes = rootOf(server);
      if (!server.isRunning || bytes === undefined || bytes.content.guest !== undefined) continue;
      bytes.content = {
        ...bytes.content,
        guest: guestOf(Buffer.from(server.userData, 'base64').toString(), server.id),
      };
    }
  }

  #isUp({ identity, disk }: Machine): boolean {
    const { scheduler, chance } = this.#parts;
    const guest = disk?.content.guest;
    if (guest === undefined) return false;
    this.#boots.set(identity, { guest, readyAt: scheduler.now + chance.between(500, 15_000) });
    return true;
  }
}

function powerOf({ vmState, taskState, isRunning }: Server): Machine['power'] {
  if (vmState === 'soft-delete' || /^(soft-)?deleting$/.test(taskState ?? '')) return 'destroying';
  return vmState === 'paused' ? 'paused' : isRunning ? 'running' : 'stopped';
}

function refOf({ metadata }: Server): OwnerRef | undefined {
  return metadata[mark.ref];
}

function volumeRef({ metadata }: Volume): OwnerRef | undefined {
  return metadata[mark.ref] ?? metadata[mark.bootOf];
}

/** What it boots from. */
function rootOf({ disk, mappings }: Server): Bytes | undefined {
  return disk ?? mappings.find(({ isRoot }) => isRoot)?.volume.bytes;
}

function diskOf(server: Server): Disk | undefined {
  const { id, host, isCopy } = server;
  const bytes = rootOf(server);
  return (
    bytes && {
      host: host?.name ?? 'no host',
      name: `${id}-disk`,
      ref: isCopy ? undefined : refOf(server),
      content: bytes.content,
    }
  );
}

function volumeDisk(volume: Volume): Disk {
  return {
    host: 'cinder',
    name: `${volume.id}.volume`,
    ref: volumeRef(volume),
    content: volume.bytes.content,
  };
}
