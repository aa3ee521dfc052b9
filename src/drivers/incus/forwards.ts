import { createHash } from 'node:crypto';
import type { DestroyOrder } from '../../orchestrator/model/destroy-order.ts';
import type { Call, Endpoint, OwnerRef } from '../../orchestrator/model/platform-driver.ts';
import { createTurns } from '../kit/turns.ts';
import { type Forward, type ForwardPort, type IncusApi, type Instance, targetOf } from './api.ts';
import { IncusRefusal } from './errors.ts';
import type { IncusConfig, IncusOffer } from './options.ts';
import {
  addressOf,
  forwardMark,
  mark,
  projectOfForward,
  refOf,
  refOfForward,
  SSH_PORT,
} from './translate.ts';

const OURS = 'ports of machines of Berth';

type Settings = NonNullable<IncusConfig['port_forwards']>;
/** Without an order, nothing is deleted: ports are only taken out of the shared objects. */
type Why = { order?: DestroyOrder | undefined; call?: Call | undefined };

export class NoPortLeft extends Error {
  override readonly name = 'NoPortLeft';
}

/**
 * Ports of the members' addresses that lead to machines. Incus keeps one object per address and replaces it as a
 * whole, without checking a tag. So changes run one at a time here, and each is verified afterwards.
 */
export class Forwards {
  readonly #api: IncusApi;
  readonly #settings: Settings;
  /** The absent machines of the last listing, see {@link strays}. */
  #absent: ReadonlySet<OwnerRef> = new Set();
  readonly #turns = createTurns();

  constructor(api: IncusApi, settings: Settings) {
    this.#api = api;
    this.#settings = settings;
  }

  endpointOf(instance: Instance, forwards: readonly Forward[]): Endpoint | undefined {
    const listen = this.#listenOn(instance.location);
    const ports = forwards
      .filter(
        ({ listen_address: address, location }) => address === listen?.listen && isAt(location, instance),
      )
      .flatMap((forward) => forward.ports)
      .filter((port) => this.#isOf(port, refOf(instance)));
    const ssh = ports.find(({ target_port: port }) => Number(port) === SSH_PORT);
    if (listen === undefined || ssh === undefined) return undefined;
    return {
      publicIp: listen.public,
      privateIp: ssh.target_address,
      sshPort: Number(ssh.listen_port),
      sshUsername: instance.config[mark.loginUser] ?? 'root',
      portForwards: ports.map(toPortForward),
    };
  }

  /** Forwards a port to each of the machine's ports, and drops forwards to an address that it no longer has. */
  async ensure(
    instance: Instance,
    network: string,
    { forward_ports: more }: IncusOffer,
    call?: Call,
  ): Promise<void> {
    const address = addressOf(instance);
    const listen = this.#listenOn(instance.location);
    if (address === undefined || listen === undefined) return;
    const targets = [...new Set([SSH_PORT, ...more])];
    await this.#turns('forwards', async () => {
      const forwards = await this.#api.forwards(network);
      const forward = forwards.find(
        ({ listen_address: at, location }) => at === listen.listen && isAt(location, instance),
      );
      const mine = (forward?.ports ?? []).filter((port) => this.#isOf(port, refOf(instance)));
      const missing = targets.filter(
        (target) =>
          !mine.some(
            ({ target_port: port, target_address: to }) => Number(port) === target && to === address,
          ),
      );
      if (missing.length === 0) return;
      // Keeps the ports of other machines, also of other Berths in other projects, unless they lead to this machine's
      // address.
      const kept = (forward?.ports ?? []).filter(
        (port) =>
          refOfForward(port) === undefined || (!mine.includes(port) && port.target_address !== address),
      );
      const ports = [...kept, ...this.#choose(refOf(instance), targets, address, mine, kept)];
      await this.#replace(network, instance.location, listen.listen, forward, ports, { call });
      await this.#verify(network, instance, listen.listen, targets.length);
    });
  }

  /** Removes the machine's forwards on every member; returns whether there were any. */
  remove(ref: OwnerRef, network: string, why: Why): Promise<boolean> {
    return this.#turns('forwards', async () => {
      let hadSome = false;
      for (const forward of await this.#api.forwards(network)) {
        const kept = forward.ports.filter((port) => !this.#isOf(port, ref));
        const isLeft = why.order !== undefined && isEmptied(forward);
        if (kept.length === forward.ports.length && !isLeft) continue;
        await this.#replace(network, forward.location, forward.listen_address, forward, kept, why);
        hadSome = true;
      }
      return hadSome;
    });
  }

  /**
   * Machines that Berth's forwards lead to, but that neither this listing nor the previous one shows. A PUT that
   * arrived after the machine's removal leaves such ports. `names`: all instances of the project.
   */
  strays(forwards: readonly Forward[], names: readonly string[]): OwnerRef[] {
    const known = new Set(names);
    const { project } = this.#api.client;
    const absent = forwards
      .flatMap(({ ports }) => ports)
      .filter((port) => projectOfForward(port) === project)
      .flatMap((port) => refOfForward(port) ?? [])
      .filter((ref) => !known.has(ref));
    const before = this.#absent;
    this.#absent = new Set(absent);
    return [...this.#absent].filter((ref) => before.has(ref));
  }

  /** Whether the port is the machine's. Projects can share a network, and each may have a machine with this name. */
  #isOf(port: ForwardPort, ref: OwnerRef): boolean {
    const { project } = this.#api.client;
    return refOfForward(port) === ref && projectOfForward(port) === project;
  }

  #listenOn(location: string): { listen: string; public: string } | undefined {
    const address = this.#settings.addresses[location];
    return typeof address === 'string' ? { listen: address, public: address } : address;
  }

  /** Chooses the host's ports for a machine. The machine keeps a port that it already has. */
  #choose(
    ref: OwnerRef,
    targets: readonly number[],
    address: string,
    mine: readonly ForwardPort[],
    kept: readonly ForwardPort[],
  ): ForwardPort[] {
    const taken = new Set(kept.flatMap(({ listen_port: ports }) => portsOf(ports)));
    const [first, last] = this.#settings.ports;
    const count = last - first + 1;
    const start = createHash('sha256').update(ref).digest().readUInt32BE() % count;
    return targets.map((target) => {
      const known = mine.find(({ target_port: port }) => Number(port) === target);
      const candidates = Array.from({ length: count }, (_, index) => first + ((start + index) % count));
      const port = known ? Number(known.listen_port) : candidates.find((candidate) => !taken.has(candidate));
      if (port === undefined) throw new NoPortLeft(`no port from ${first} to ${last} is free`);
      taken.add(port);
      return {
        description: forwardMark(ref, this.#api.client.project),
        protocol: 'tcp',
        listen_port: String(port),
        target_port: String(target),
        target_address: address,
      };
    });
  }

  async #replace(
    network: string,
    location: string | undefined,
    address: string,
    known: Forward | undefined,
    ports: readonly ForwardPort[],
    { order, call }: Why,
  ): Promise<void> {
    const query = targetOf(location);
    const { client } = this.#api;
    const at = `/1.0/networks/${network}/forwards`;
    if (known === undefined) {
      const body = { listen_address: address, description: OURS, ports };
      return void (await client.send('POST', at, { query, body, call }));
    }
    // If the object has only Berth's ports, it is deleted with the last one.
    if (order !== undefined && ports.length === 0 && known.description === OURS)
      return void (await client.send('DELETE', `${at}/${address}`, { query, order, call }));
    const { description, config } = known;
    await client.send('PUT', `${at}/${address}`, { query, body: { description, config, ports }, call });
  }

  /**
   * Checks the result of a change. Another server may have replaced the object in the meantime: then the step is
   * repeated.
   */
  async #verify(network: string, instance: Instance, address: string, count: number): Promise<void> {
    const forwards = await this.#api.forwards(network);
    const ports = forwards
      .filter(({ listen_address: at }) => at === address)
      .flatMap((forward) => forward.ports);
    if (ports.filter((port) => this.#isOf(port, refOf(instance))).length < count)
      throw new IncusRefusal(409, 'another server has replaced the network forward', 'PUT');
  }
}

function isEmptied({ description, ports }: Forward): boolean {
  return description === OURS && ports.length === 0;
}

function isAt(location: string | undefined, instance: Instance): boolean {
  return location === undefined || location === '' || location === instance.location;
}

function portsOf(text: string): number[] {
  return text.split(',').flatMap((part) => {
    const [first = 0, last = first] = part.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });
}

function toPortForward({ listen_port: external, target_port: internal }: ForwardPort) {
  return { internal_port: Number(internal), external_port: Number(external) };
}
