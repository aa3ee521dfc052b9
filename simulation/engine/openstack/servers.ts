import type { Doer } from '../engine.ts';
import { Refusal } from '../surroundings.ts';
import { assertMetadata, type Fields, type Text, type Who } from './api.ts';
import type { Cloud } from './cloud.ts';
import type { Compute } from './compute.ts';
import type { Server, Transition } from './records.ts';
import { POWER, STATES, type VmState } from './records.ts';
import { transitionsOf } from './transitions.ts';
import { Volumes } from './volumes.ts';

const PERSON = 'a person';
/** Longest until Nova notices that a guest is off. */
const NOTICED_MS = 600_000;

/** What the driver asks Nova for. */
interface NewServer {
  name: string;
  flavorRef: string;
  imageRef?: string;
  availability_zone?: string;
  networks: 'none' | { port: string }[];
  block_device_mapping_v2?: { uuid: string; boot_index?: number }[];
  user_data?: string;
  metadata?: Text;
  tags?: string[];
}

/** What Nova does with servers: every change takes steps at a host, and ends in a state or a fault. */
export class Servers {
  readonly cloud: Cloud;
  readonly volumes: Volumes;
  readonly #transitions: readonly Transition[];

  constructor(cloud: Cloud) {
    this.cloud = cloud;
    this.volumes = new Volumes(cloud);
    this.#transitions = transitionsOf(this);
    cloud.onRestart = (compute) => this.#restarted(compute);
  }

  /** Answers before anything is built. @throws {Refusal} for what Nova checks first */
  create(wanted: NewServer, { project }: Who, by: Doer): Server {
    const { cloud } = this;
    const { name, flavorRef, imageRef, networks, availability_zone: zone, metadata = {} } = wanted;
    const flavor = cloud.flavors.get(flavorRef);
    const devices = wanted.block_device_mapping_v2 ?? [];
    const userData = wanted.user_data ?? '';
    if (flavor === undefined) throw new Refusal(400, `Flavor ${flavorRef} could not be found.`);
    if (imageRef !== undefined && cloud.images.get(imageRef)?.status !== 'active')
      throw new Refusal(400, 'Can not find requested image');
    if (zone !== undefined && !cloud.computes.some((one) => one.zone === zone && one.isUp))
      throw new Refusal(400, 'The requested availability zone is not available');
    if (userData.length > 65_535) throw new Refusal(400, 'Invalid input for field/attribute user_data.');
    assertMetadata(metadata);
    const ports = networks === 'none' ? [] : networks.map(({ port }) => port);
    if (ports.some((id) => !cloud.ports.has(id))) throw new Refusal(400, 'A port could not be found.');
    if (ports.some((id) => cloud.ports.get(id)?.device_id !== ''))
      throw new Refusal(409, 'A port is still in use.');
    cloud.assertQuota(project, 403, { instances: 1, cores: flavor.vcpus, ram: flavor.ram });
    const server: Server = {
      id: cloud.id(),
      name,
      project_id: project,
      flavor,
      image: imageRef,
      zone,
      vmState: 'building',
      task: 'scheduling',
      power: POWER.none,
      isRunning: false,
      metadata,
      tags: wanted.tags ?? [],
      userData,
      ports,
      createdAt: cloud.now,
      updatedAt: cloud.now,
      isLocked: false,
      mappings: [],
      isVolumeBacked: imageRef === undefined,
      isCopy: false,
    };
    for (const { uuid, boot_index: index } of devices) this.volumes.map(server, uuid, index === 0);
    cloud.servers.set(server.id, server);
    void this.#run(server, this.#transition('create'), by);
    return server;
  }

  /** `POST /servers/ID/action`. @throws {Refusal} 409 in a state that it is not allowed in */
  act(server: Server, body: Fields, by: Doer): Fields {
    const { id, vmState, task } = server;
    const [[name = '', args] = []] = Object.entries(body);
    if (name === 'os-getConsoleOutput')
      return { output: server.isRunning ? `cloud-init: ${server.name} is up\n` : '' };
    if (name === 'lock' || name === 'unlock') server.isLocked = name === 'lock';
    else if (name === 'forceDelete') this.remove(server, by, true);
    else if (name === 'os-resetState')
      Object.assign(server, { vmState: (args as Fields)['state'], task: null, work: undefined });
    else {
      const found = this.#transitions.find((one) => one.name === name && one.from?.includes(vmState));
      const is = found === undefined ? `vm_state ${vmState}` : `task_state ${task}`;
      if (found === undefined || task !== null)
        throw new Refusal(409, `Cannot '${name.replace('os-', '')}' instance ${id} while it is in ${is}`);
      void this.#run(server, found, by);
    }
    return {};
  }

  /** Ends a task in a state. One that was migrated has the power that it had before. */
  settle(server: Server, vmState: VmState): void {
    const { power } = STATES[vmState === 'resized' ? (server.before?.vmState ?? vmState) : vmState];
    Object.assign(server, { vmState, power, task: null, isRunning: power === POWER.running });
  }

  /** `DELETE /servers/ID`. Without its host, only the records go. */
  remove(server: Server, by: Doer, isForced = false): void {
    const { cloud } = this;
    const { host, task, vmState, snapshot } = server;
    // Nova tries it once, and logs that it failed.
    if (snapshot !== undefined && vmState.startsWith('shelved') && !cloud.fails(0.05))
      cloud.images.delete(snapshot.id);
    if (host === undefined || !host.isUp) {
      this.dissolve(server);
      cloud.observe(by);
      return;
    }
    if (task === 'deleting' || task === 'soft-deleting') return;
    const isSoft = cloud.parts.reclaimMs !== undefined && !isForced && server.launchedAt !== undefined;
    void this.#run(server, this.#transition(isSoft ? 'soft-delete' : 'delete'), by);
  }

  reclaimLater(server: Server): void {
    void this.cloud.sleep(this.cloud.parts.reclaimMs ?? 0).then(() => {
      if (server.vmState === 'soft-delete' && this.cloud.servers.has(server.id))
        void this.#run(server, this.#transition('delete'), PERSON);
    });
  }

  /** Its guest has shut itself down, or was killed at its host: Nova stops it then. */
  guestStopped(server: Server): void {
    server.isRunning = false;
    void this.cloud.task(NOTICED_MS).then(() => {
      if (server.isRunning || !this.cloud.servers.has(server.id) || server.task !== null) return;
      // nova/compute/manager.py, _sync_instance_power_state: other states keep their name.
      server.power = POWER.off;
      if (server.vmState === 'active' || server.vmState === 'paused')
        void this.#run(server, this.#transition('os-stop'), PERSON);
    });
  }

  releaseParts(server: Server): void {
    for (const port of this.cloud.portsOf(server)) port.device_id = '';
    for (const { volume, attachment } of server.mappings) this.volumes.release(volume, attachment);
    server.mappings = [];
  }

  /** The end of its record. Its ports and volumes stay. */
  dissolve(server: Server): void {
    this.releaseParts(server);
    this.cloud.servers.delete(server.id);
    server.isRunning = false;
    server.work = undefined;
  }

  #transition(name: string): Transition {
    const found = this.#transitions.find((one) => one.name === name);
    if (found === undefined) throw new Error(`there is no transition ${name}`);
    return found;
  }

  /** Goes on until it is done, or something else begins. */
  async #run(server: Server, transition: Transition, by: Doer): Promise<void> {
    const work = { transition };
    server.work = work;
    try {
      for (const [task, longMs, ends] of transition.phases) {
        Object.assign(server, { task, updatedAt: this.cloud.now });
        await this.cloud.task(longMs);
        await server.host?.answers();
        if (server.work !== work) return;
        if (ends?.(server) === false) return this.#end(server, work, by);
        this.cloud.observe(by);
      }
      this.#end(server, work, by, transition.to);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      server.fault = error.message;
      transition.failed?.(server);
      this.#end(server, work, by);
    }
  }

  #end(server: Server, work: Server['work'], by: Doer, to?: VmState): void {
    if (server.work !== work) return;
    Object.assign(server, { work: undefined, task: null, updatedAt: this.cloud.now });
    if (to !== undefined) this.settle(server, to);
    this.cloud.observe(by);
  }

  /** The nova-compute of a host has started again. */
  #restarted(compute: Compute): void {
    for (const server of this.cloud.servers.values()) {
      const { host, vmState, work } = server;
      if (host !== compute || work === undefined) continue;
      server.work = undefined;
      if (work.transition.isTakenUp) void this.#run(server, work.transition, PERSON);
      if (vmState === 'building') Object.assign(server, { vmState: 'error', task: null });
    }
  }
}
