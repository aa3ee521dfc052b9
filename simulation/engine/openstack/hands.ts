import type { Chance } from '../../kernel/chance.ts';
import type { HandsOn, Machine } from '../engine.ts';
import { Refusal } from './api.ts';
import type { Cloud } from './cloud.ts';
import type { ComputeApi } from './compute-api.ts';
import type { Identity } from './identity.ts';
import { POWER, type Server } from './records.ts';
import type { ActionArgs } from './server-actions.ts';
import type { Servers } from './servers.ts';

const PERSON = 'a person';
/** A person ends what was begun so much later. */
const LATER_MS: readonly [number, number] = [10_000, 400_000];

interface Parts {
  cloud: Cloud;
  compute: ComputeApi;
  servers: Servers;
  identity: Identity;
  /** The id of the credential of Berth. */
  credential: string;
}

/** What people do with `openstack`, as administrators. Each deed returns whether the cloud accepted it. */
export class CloudHands implements HandsOn {
  readonly #parts: Parts;
  readonly #cloud: Cloud;
  /** Ends what was begun and is not ended yet. */
  readonly #ends = new Set<() => void>();

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#cloud = parts.cloud;
  }

  /** Within its zone: live while it runs, else cold, and confirmed later. */
  move(machine: Machine, host: string): boolean {
    const server = this.#find(machine);
    const goal = this.#cloud.computes.find(({ name }) => name === host);
    if (
      server?.host === undefined ||
      goal === undefined ||
      goal === server.host ||
      goal.zone !== server.host.zone
    )
      return false;
    if (server.isRunning) return this.act(server, 'os-migrateLive', { host });
    if (!this.act(server, 'migrate', { host })) return false;
    this.#later(() => this.act(server, 'confirmResize'));
    return true;
  }

  rename(machine: Machine, name: string): boolean {
    return this.#change(machine, (server) => {
      server.name = name;
    });
  }

  /** `openstack server delete` where the cloud keeps it for a while; the function is `restore`. */
  undefine(machine: Machine): (() => void) | undefined {
    const server = this.#find(machine);
    const { reclaimMs } = this.#cloud.parts;
    if (
      reclaimMs === undefined ||
      server?.host === undefined ||
      server.launchedAt === undefined ||
      server.taskState !== null
    )
      return undefined;
    this.#parts.servers.remove(server, PERSON);
    const restore = (): void => {
      if (server.vmState === 'soft-delete') this.act(server, 'restore');
      else if (server.taskState === 'soft-deleting') void this.#cloud.sleep(5_000).then(restore);
    };
    return restore;
  }

  /** A server with a copy of its disk and all of its metadata, shut off. */
  clone(machine: Machine, name: string): boolean {
    const server = this.#find(machine);
    if (server?.disk === undefined || server.host === undefined) return false;
    const copy: Server = {
      ...{ ...server, id: this.#cloud.id(), name, isCopy: true, isRunning: false, disk: { ...server.disk } },
      ...{
        metadata: { ...server.metadata },
        mappings: [],
        networks: [],
        vmState: 'stopped',
        power: POWER.off,
      },
      ...{ taskState: null, work: undefined, before: undefined, actions: [], createdAt: this.#cloud.now },
    };
    this.#cloud.servers.set(copy.id, copy);
    this.#cloud.allocate(copy, server.host, copy.flavor);
    this.#cloud.observe(PERSON);
    return true;
  }

  remove(machine: Machine): boolean {
    return this.#change(machine, (server) => this.#parts.servers.remove(server, PERSON, true));
  }

  powerOff(machine: Machine): boolean {
    const server = this.#find(machine);
    if (server === undefined || !server.isRunning || server.taskState !== null) return false;
    this.#parts.servers.guestStopped(server, PERSON);
    return true;
  }

  /** An action of Nova's on a server; with `undo`, that is done some time later. */
  act(server: Server, name: string, args: ActionArgs = {}, undo?: string): boolean {
    if (!this.#cloud.servers.has(server.id)) return false;
    try {
      this.#parts.compute.actions.act(server, name, args, PERSON, true);
    } catch (error) {
      if (error instanceof Refusal) return false;
      throw error;
    }
    if (undo !== undefined) this.#later(() => this.act(server, undo));
    return true;
  }

  detachVolume(machine: Machine): boolean {
    const server = this.#find(machine);
    const mapping = server?.mappings.find(({ isRoot }) => !isRoot);
    if (server === undefined || mapping === undefined || server.taskState !== null) return false;
    try {
      this.#parts.compute.attachments.detach(server, mapping, { by: PERSON });
      return true;
    } catch (error) {
      if (error instanceof Refusal) return false;
      throw error;
    }
  }

  removePorts(machine: Machine): boolean {
    return this.#change(machine, (server) => {
      for (const port of this.#cloud.portsOf(server)) this.#cloud.removePort(port);
    });
  }

  /** The floating IP is another's later, or nobody's. */
  takeFloatingIp(machine: Machine): boolean {
    const server = this.#find(machine);
    const ports = server === undefined ? [] : this.#cloud.portsOf(server);
    const floating = ports.map((port) => this.#cloud.floatingIpOf(port)).find((one) => one !== undefined);
    if (floating === undefined) return false;
    floating.port = null;
    this.#cloud.observe(PERSON);
    return true;
  }

  removeMetadata(machine: Machine, key: string): boolean {
    return this.#change(machine, (server) => {
      const { [key]: _, ...rest } = server.metadata;
      server.metadata = rest;
    });
  }

  setQuota(quota: Partial<Cloud['quota']>): void {
    Object.assign(this.#cloud.quota, quota);
  }

  /** The scheduler gives it nothing more. */
  disable(host: string): void {
    const compute = this.#cloud.computes.find(({ name }) => name === host);
    if (compute === undefined) return;
    compute.isDisabled = true;
    this.#later(() => {
      compute.isDisabled = false;
    });
  }

  /** Of Berth: its tokens end with it. Somebody gives it back later. */
  revokeCredential(): void {
    const { identity, credential } = this.#parts;
    identity.revokeCredential(credential);
    this.#later(() => identity.restoreCredential(credential));
  }

  /** Nova shows the servers in part, or leaves them out, until it answers again. */
  stopCell(): void {
    this.#cloud.isCellDown = true;
    this.#later(() => {
      this.#cloud.isCellDown = false;
    });
  }

  /** One of what else happens to a machine at a cloud, and which. */
  meddle(machine: Machine, chance: Chance): string | undefined {
    const server = this.#find(machine);
    if (server === undefined) return undefined;
    const deeds: Record<string, () => boolean> = {
      stop: () => this.act(server, 'os-stop'),
      pause: () => this.act(server, 'pause', {}, 'unpause'),
      suspend: () => this.act(server, 'suspend', {}, 'resume'),
      shelve: () => this.act(server, 'shelve'),
      rescue: () => this.act(server, 'rescue', {}, 'unrescue'),
      'reboot by hand': () => this.act(server, 'reboot', { type: 'HARD' }),
      'migrate without confirm': () => this.act(server, 'migrate', {}, 'confirmResize'),
      'migrate and revert': () => this.act(server, 'migrate', {}, 'revertResize'),
      lock: () => this.act(server, 'lock', {}, 'unlock'),
      // Nova cannot reboot one that has no host.
      'reset to ERROR': () =>
        server.host !== undefined && this.act(server, 'os-resetState', { state: 'error' }, 'reboot'),
      'disable the host': () => {
        this.disable(machine.host);
        return true;
      },
      'stop the cell': () => {
        this.stopCell();
        return true;
      },
      'revoke the credential': () => {
        this.revokeCredential();
        return true;
      },
    };
    const deed = chance.pick(Object.keys(deeds));
    return deeds[deed]?.() ? deed : undefined;
  }

  /** Somebody has looked at the alarms: what was begun is ended, and what hangs is reset. */
  rest(): void {
    for (const end of [...this.#ends]) end();
    for (const volume of this.#cloud.volumes.values())
      if (/^error_/.test(volume.status)) volume.status = 'available';
    for (const server of this.#cloud.servers.values()) {
      if (server.vmState === 'paused') this.act(server, 'unpause');
      if (server.vmState === 'suspended') this.act(server, 'resume');
      if (server.taskState === null || server.work !== undefined) continue;
      const state = server.host === undefined ? 'shelved_offloaded' : 'active';
      this.act(server, 'os-resetState', { state });
      if (!server.isRunning && server.host !== undefined) this.act(server, 'reboot', { type: 'HARD' });
    }
  }

  #find({ identity }: Machine): Server | undefined {
    return this.#cloud.servers.get(identity);
  }

  #change(machine: Machine, change: (server: Server) => void): boolean {
    const server = this.#find(machine);
    if (server === undefined) return false;
    change(server);
    this.#cloud.observe(PERSON);
    return true;
  }

  /** Tries until it can be done. */
  #later(end: () => unknown): void {
    let tries = 0;
    const attempt = (): void => {
      if (!this.#ends.has(attempt)) return;
      if (end() === false && ++tries < 20) void this.#cloud.sleep(30_000).then(attempt);
      else this.#ends.delete(attempt);
    };
    this.#ends.add(attempt);
    void this.#cloud.sleep(this.#cloud.chance.between(...LATER_MS)).then(attempt);
  }
}
