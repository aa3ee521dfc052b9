import { openIncus } from '../../../src/drivers/incus/open.ts';
import { incusConfigSchema } from '../../../src/drivers/incus/options.ts';
import { mark, refOfForward } from '../../../src/drivers/incus/translate.ts';
import type { Transport } from '../../../src/drivers/incus/transport.ts';
import type { OwnerRef, PlatformDriver } from '../../../src/orchestrator/model/platform-driver.ts';
import type { Clock } from '../../../src/ports/clock.ts';
import type { ServerProcess } from '../../kernel/process.ts';
import {
  type Bytes,
  type Disk,
  Engine,
  type EngineParts,
  type HandsOn,
  isOf,
  type Machine,
  type RunningGuest,
} from '../engine.ts';
import { Refusal } from '../surroundings.ts';
import {
  Cluster,
  type Forward,
  type ForwardPort,
  type Instance,
  type Member,
  NETWORK,
  POOL,
  PROJECT,
  type Volume,
  volumesOf,
} from './cluster.ts';
import { handsOn } from './hands.ts';
import type { Sent } from './instance-api.ts';
import { RestApi } from './rest-api.ts';

/** As the driver's client has it. */
const REQUEST_MS = 6_500;
const MEMBERS = 3;

/** A daemon of Incus, or a cluster of three members, in memory, and the real driver for each server. */
export class IncusEngine extends Engine {
  readonly driverName: string = 'incus';
  readonly hands: HandsOn;
  readonly cluster: Cluster;
  readonly #api: RestApi;

  constructor(parts: EngineParts) {
    super(parts);
    const { scheduler, chance, isCalm } = parts;
    this.cluster = new Cluster({
      ...{ scheduler, chance, isCalm },
      members: parts.hosts === 1 ? 1 : MEMBERS,
      hasForwards: chance.happens(0.7),
      observe: (by) => this.observe(by),
    });
    if (parts.sharesFileSystem) this.cluster.poolDriver = 'btrfs';
    this.#api = new RestApi(this.cluster);
    this.hands = handsOn(this.cluster, this.#api.instances);
  }

  get hosts(): readonly Member[] {
    return this.cluster.members;
  }

  driver(process: ServerProcess, clock: Clock): PlatformDriver {
    const { catalog } = this.parts;
    const { members, hasForwards } = this.cluster;
    const config = incusConfigSchema.parse({
      driver: 'incus',
      address: members.map(({ name }) => addressOf(name)),
      project: PROJECT,
      storage_pool: POOL,
      network: NETWORK,
      images: { 'ubuntu-24.04': { login_user: 'ubuntu' } },
      ...(hasForwards && {
        port_forwards: {
          ports: '30000-30019',
          addresses: Object.fromEntries(members.map(({ name, publicIp }) => [name, publicIp])),
        },
      }),
    });
    const connection = {
      addresses: config.address,
      project: PROJECT,
      transport: (address: string) => this.#transport(process, address),
    };
    return openIncus(config, connection, { catalog, clock });
  }

  /** Sends one request, as a driver of the process does. @throws {Refusal} */
  async request(
    process: ServerProcess,
    { method, path, query = {}, body = {} }: Pick<Sent, 'method' | 'path'> & Partial<Sent>,
  ): Promise<unknown> {
    const [member] = this.hosts;
    if (member === undefined) throw new Error('there is no member');
    const sent = { method, path, query, body, match: undefined };
    return this.#send(process, member, sent, undefined);
  }

  override clear(): void {
    super.clear();
    for (const member of this.hosts) member.forget();
    for (const member of this.hosts) member.isSilent = false;
    for (const instance of this.cluster.instances.values()) if (instance.isCopy) letGo(instance);
  }

  machines(): Machine[] {
    return this.#instances().map((one) => this.#machineOf(one));
  }

  traces(id: string): string[] {
    const { instances, lost, volumes, forwards } = this.cluster;
    const records = [...instances.values()].filter((one) => !one.isCopy && isOf(id, refOf(one)));
    return [
      ...records.map(({ name, member }) => `instance ${name} on ${member.name}`),
      ...[...lost].filter((one) => isOf(id, refOf(one))).map(({ name }) => `the disk of ${name}`),
      ...volumes
        .filter(({ name }) => isOf(id, name))
        .map(({ name, member }) => `volume ${name} on ${member.name}`),
      ...forwards.flatMap(({ ports, listen }) =>
        ports
          .filter((port) => isOf(id, refOfForward(port)))
          .map(({ listen_port: port }) => `the port ${listen}:${port}`),
      ),
    ];
  }

  override guestAt(host: string, port: number): RunningGuest | undefined {
    const { hasForwards, instances, forwards } = this.cluster;
    const running = [...instances.values()].filter(({ ip }) => ip !== undefined);
    const found = hasForwards
      ? atForward(forwards, running, host, port)
      : running.find(({ ip }) => ip === host && port === 22);
    return this.booted(found && this.#machineOf(found));
  }

  #transport(process: ServerProcess, address: string): Transport {
    const member = this.hosts.find(({ name }) => addressOf(name) === address);
    if (member === undefined) throw new Error(`there is no member at ${address}`);
    return {
      send: async ({ method, path, query, headers, body, signal }) => {
        const sent = {
          ...{ method, path, query, match: headers['If-Match'] },
          body: bodyOf(headers, body),
        };
        const answer = (status: number, envelope: object, etag?: string) => ({
          ...{ status, etag, date: undefined },
          text: JSON.stringify(envelope),
        });
        try {
          const { metadata = {}, operation, etag } = await this.#send(process, member, sent, signal);
          const envelope = operation === undefined ? { type: 'sync', metadata } : { type: 'async', metadata };
          const path = operation === undefined ? {} : { operation: `/1.0/operations/${operation}` };
          return answer(operation === undefined ? 200 : 202, { ...envelope, ...path }, etag);
        } catch (error) {
          if (!(error instanceof Refusal)) throw error;
          return answer(error.status, { type: 'error', error: error.message, error_code: error.status });
        }
      },
      close: async () => undefined,
    };
  }

  #send(process: ServerProcess, member: Member, sent: Omit<Sent, 'by'>, signal: AbortSignal | undefined) {
    const { method, path, query, body } = sent;
    const about = [path.slice('/1.0/'.length), query['target'], body.name, body.action].filter(Boolean);
    const line = `${method} ${about.join(' ')}`;
    const command = { host: member, line, isRead: method === 'GET', timeoutMs: REQUEST_MS, signal };
    // What is read cannot be changed by who reads it, and the other way round.
    const arrive = async (isLate: boolean) =>
      structuredClone(await this.#api.answer({ ...structuredClone(sent), by: { process, line, isLate } }));
    return this.parts.commands.send(process, command, arrive);
  }

  /** Without the records that a move makes, or has left, beside the machine. */
  #instances(): Instance[] {
    const { instances } = this.cluster;
    const isBeside = (one: Instance): boolean => {
      const machine = one.movedFrom && lastRecordOf(one.movedFrom);
      return machine !== undefined && machine !== one && instances.get(machine.name) === machine;
    };
    return [...instances.values()].filter((one) => !isBeside(one));
  }

  #machineOf(instance: Instance): Machine {
    const { name, member, uuid, isRunning, isCopy } = instance;
    return {
      ...{ host: member.name, name, identity: uuid, isCopy },
      ref: refOf(instance),
      power: isRunning ? 'running' : 'stopped',
      address: this.#addressOf(instance),
      disk: diskOf(instance),
      volumes: volumesOf(this.cluster, instance).map(volumeDisk),
    };
  }

  #addressOf(instance: Instance): Machine['address'] {
    const { member, ip } = instance;
    if (ip === undefined) return undefined;
    if (!this.cluster.hasForwards) return { host: ip, port: 22 };
    const forward = this.cluster.forwards.find(
      (one) => one.member === member && one.listen === member.publicIp,
    );
    const port = forward?.ports.find(
      (one) => isSsh(one) && one.target_address === ip && refOfForward(one) === refOf(instance),
    );
    return port && { host: member.publicIp, port: Number(port.listen_port) };
  }

  protected override bytes(): [Bytes, Disk][] {
    const { instances, lost, volumes } = this.cluster;
    return [
      ...[...instances.values(), ...lost].flatMap((one): [Bytes, Disk][] => {
        const disk = diskOf(one);
        return one.disk === undefined || disk === undefined ? [] : [[one.disk, disk]];
      }),
      ...volumes.map((one): [Bytes, Disk] => [one.bytes, volumeDisk(one)]),
    ];
  }

  protected override isUp({ name }: Machine): boolean {
    return this.cluster.instances.get(name)?.ip !== undefined;
  }

  protected override running() {
    const running = [...this.cluster.instances.values()].filter(({ isRunning }) => isRunning);
    return running.map(({ uuid: id, disk: bytes, config }) => ({
      id,
      bytes,
      data: () => `${config['cloud-init.vendor-data']}\n${config['cloud-init.user-data']}`,
    }));
  }
}

const addressOf = (member: string): string => `https://${member}:8443`;
const isSsh = ({ target_port: port }: ForwardPort): boolean => port === '22';

function atForward(
  forwards: readonly Forward[],
  running: readonly Instance[],
  host: string,
  port: number,
): Instance | undefined {
  for (const { member, listen, ports } of forwards) {
    if (listen !== host) continue;
    const found = ports.find(({ listen_port: at }) => Number(at) === port);
    if (found !== undefined)
      return running.find((one) => one.member === member && one.ip === found.target_address);
  }
  return undefined;
}

function lastRecordOf(instance: Instance): Instance {
  return instance.movedTo === undefined ? instance : lastRecordOf(instance.movedTo);
}

function refOf({ config }: Instance): OwnerRef | undefined {
  return config[mark.createdBy] === undefined ? undefined : config[mark.ref];
}

function diskOf(instance: Instance): Disk | undefined {
  const { name, member, disk, isCopy } = instance;
  return (
    disk && {
      ...{ host: member.name, name, content: disk.content },
      ref: isCopy ? undefined : refOf(instance),
    }
  );
}

function volumeDisk({ name, member, bytes }: Volume): Disk {
  return { host: member.name, name: `${name}.volume`, ref: name, content: bytes.content };
}

/** Somebody takes the volumes of another away from a copy, which keeps them from being moved. */
function letGo(copy: Instance): void {
  const own = Object.entries(copy.devices).filter(([, { source }]) => source === undefined);
  copy.devices = Object.fromEntries(own);
}

/** What a connection says that did not come about, or that was lost. */
export function unreachable(why: string): Error {
  const isUnsent = /refuses the connection|no route/.test(why);
  return Object.assign(new Error(why), { code: isUnsent ? 'ECONNREFUSED' : 'ECONNRESET' });
}

/** The body in JSON. A file's content is left out. */
function bodyOf(headers: Readonly<Record<string, string>>, body: string | undefined): Sent['body'] {
  const name = headers['X-Incus-name'];
  if (name !== undefined) return { name };
  return body === undefined ? {} : JSON.parse(body);
}
