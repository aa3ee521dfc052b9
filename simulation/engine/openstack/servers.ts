import type { Doer } from '../engine.ts';
import { type Asked, found, Refusal, type Who } from './api.ts';
import type { Cloud } from './cloud.ts';
import type { Compute } from './compute.ts';
import { assertRoom, assertSound, type BlockDevice, type NewServer } from './new-server.ts';
import { type Mapping, POWER, type Port, type Server, type VmState, type Volume } from './records.ts';
import type { Volumes } from './volumes.ts';

export const EMPTY = { guest: undefined, written: [] };
const NO_HOST = 'No valid host was found. There are not enough hosts available.';
/** So long after it is back, a host removes what was deleted while it was down. */
const REAPED_WITHIN_MS = 300_000;

/** Nova's names of what it does, by the task that it begins with. */
const ACTIONS: Record<string, string> = {
  scheduling: 'create',
  deleting: 'delete',
  'soft-deleting': 'delete',
  'powering-off': 'stop',
  'powering-on': 'start',
  shelving: 'shelve',
  unshelving: 'unshelve',
  rebooting: 'reboot',
  rebooting_hard: 'reboot',
  resize_prep: 'resize',
};

/** What was doing it has ended, or something else is done with the server. */
class Interrupted extends Error {}

/** Waits until a step of Nova's is done at the server's host. @throws {Interrupted} if it will not be */
export type Step = (shortMs: number, longMs: number) => Promise<void>;

/** What Nova does with servers: every change takes steps at a host, and ends in a state or a fault. */
export class Servers {
  readonly cloud: Cloud;
  readonly volumes: Volumes;

  constructor(cloud: Cloud, volumes: Volumes) {
    this.cloud = cloud;
    this.volumes = volumes;
    cloud.onRestart = (compute) => this.#restarted(compute);
  }

  /** Answers before anything is built. @throws {Refusal} */
  create(wanted: NewServer, { project, user }: Who, by: Doer): Server {
    const { cloud } = this;
    const flavor = cloud.flavors.get(wanted.flavorRef);
    if (flavor === undefined) throw new Refusal(400, `Flavor ${wanted.flavorRef} could not be found.`);
    const devices = wanted.block_device_mapping_v2 ?? [];
    const boots = devices.find((one) => Number(one.boot_index ?? -1) === 0);
    assertSound(cloud, wanted, boots);
    const isVolumeBacked = boots?.destination_type === 'volume' || boots?.source_type === 'volume';
    const { networks = 'none' } = wanted;
    const server: Server = {
      ...{ id: cloud.id(), name: wanted.name, project, user, flavor, zone: wanted.availability_zone },
      ...{
        image: wanted.imageRef || undefined,
        host: undefined,
        vmState: 'building',
        taskState: 'scheduling',
      },
      ...{
        power: POWER.none,
        isRunning: false,
        metadata: { ...wanted.metadata },
        tags: [...(wanted.tags ?? [])],
      },
      ...{ userData: wanted.user_data ?? '', keyName: wanted.key_name ?? null },
      ...{ configDrive: wanted.config_drive ? 'True' : '', description: wanted.description ?? null },
      securityGroups: (wanted.security_groups ?? [{ name: 'default' }]).map(({ name }) => name),
      networks: networks === 'none' ? [] : networks === 'auto' ? this.#anyNetwork() : networks,
      ...{ createdAt: cloud.now, updatedAt: cloud.now, launchedAt: undefined, fault: undefined },
      ...{ isLocked: false, mappings: [], disk: undefined, isVolumeBacked, shelvedImage: undefined },
      ...{ before: undefined, work: undefined, actions: [], isCopy: false },
    };
    assertRoom(cloud, server);
    for (const device of devices)
      if (device.source_type === 'volume') this.#map(server, this.#volumeFor(device, project), device);
    cloud.servers.set(server.id, server);
    cloud.observe(by);
    this.begin(
      server,
      'scheduling',
      by,
      (step) => this.#build(server, devices, by, step),
      (why) => this.#giveUp(server, why),
    );
    return server;
  }

  /** @throws {Refusal} 500 while its cell is down, unless `isPartial`: then only a part of it may be shown */
  find({ who }: Pick<Asked, 'who'>, id: string, isPartial = false): Server {
    const server = this.cloud.servers.get(id);
    const own = found(
      server?.project === who.project ? server : undefined,
      `Instance ${id} could not be found.`,
    );
    if (this.cloud.isCellDown && !isPartial)
      throw new Refusal(500, 'Cell is not responding and hence instance info is not available.');
    return own;
  }

  /** Begins something that goes on whoever waits for it; `failed` says what a failure leaves. */
  begin(
    server: Server,
    task: string,
    by: Doer,
    work: (step: Step) => Promise<void>,
    failed: (why: string) => void = () => undefined,
  ): void {
    const { cloud } = this;
    const token = {};
    const action = { action: ACTIONS[task] ?? task, at: cloud.now, hasFailed: false };
    server.actions.push(action);
    server.work = token;
    server.taskState = task;
    server.updatedAt = cloud.now;
    let { host } = server;
    let ends = host?.ends;
    const step: Step = async (shortMs, longMs) => {
      if (server.host !== host) {
        host = server.host;
        ends = host?.ends;
      }
      await cloud.takes(shortMs, longMs);
      await host?.answers();
      if (server.work !== token || host?.ends !== ends || !this.isThere(server)) throw new Interrupted();
      server.updatedAt = cloud.now;
    };
    const end = (): void => {
      if (server.work === token) server.work = undefined;
    };
    work(step).then(end, (error: unknown) => {
      if (error instanceof Interrupted) return;
      if (!(error instanceof Refusal)) throw error;
      end();
      action.hasFailed = true;
      server.taskState = null;
      server.fault = { code: 500, message: error.message, at: cloud.now };
      failed(error.message);
      cloud.observe(by);
    });
  }

  isThere(server: Server): boolean {
    return this.cloud.servers.get(server.id) === server;
  }

  /** Ends a task in a state. */
  settle(server: Server, vmState: VmState, power: number): void {
    Object.assign(server, { vmState, power, taskState: null, isRunning: power === POWER.running });
  }

  /** `DELETE /servers/ID`, or `forceDelete`. */
  remove(server: Server, by: Doer, isForced = false): void {
    const { cloud } = this;
    const { host, taskState, vmState } = server;
    const isSoft = cloud.parts.reclaimMs !== undefined && !isForced && server.launchedAt !== undefined;
    if (vmState === 'shelved' || vmState === 'shelved_offloaded') this.#removeSnapshot(server, by);
    if (host === undefined || !host.isUp) {
      // Without its host: the records go, and a host that is down keeps the disk until it is back.
      if (host !== undefined && server.disk !== undefined) cloud.leftBehind.set(server.disk, server);
      this.#dissolve(server, by);
      return;
    }
    if (taskState === 'deleting' || taskState === 'soft-deleting') return;
    if (!isSoft) this.#delete(server, by);
    else
      this.begin(server, 'soft-deleting', by, async (step) => {
        await step(1_000, 20_000);
        this.settle(server, 'soft-delete', POWER.off);
        cloud.observe(by);
        void cloud.sleep(cloud.parts.reclaimMs ?? 0).then(() => {
          if (server.vmState === 'soft-delete' && this.isThere(server)) this.#delete(server, 'a person');
        });
      });
  }

  /** Its guest has shut itself down, or somebody has killed it at its host: Nova stops it then. */
  guestStopped(server: Server, by: Doer): void {
    server.isRunning = false;
    this.cloud.observe(by);
    void this.cloud.takes(15_000, 600_000).then(() => {
      if (server.isRunning || !this.isThere(server) || server.taskState !== null) return;
      // nova/compute/manager.py, _sync_instance_power_state: other states keep their name.
      server.power = POWER.off;
      if (['active', 'paused'].includes(server.vmState))
        this.begin(server, 'powering-off', by, async (step) => {
          await step(500, 2_000);
          this.settle(server, 'stopped', POWER.off);
        });
    });
  }

  bind(server: Server, port: Port, host: Compute): void {
    Object.assign(port, { device: server.id, owner: `compute:${host.zone}`, host: host.name });
  }

  /** Its ports at the end: those that Nova made go, others are unbound. */
  releasePorts(server: Server): void {
    for (const port of this.cloud.portsOf(server)) {
      if (port.isNovas) this.cloud.removePort(port);
      else Object.assign(port, { device: '', owner: '', host: '' });
    }
  }

  async #build(server: Server, devices: readonly BlockDevice[], by: Doer, step: Step): Promise<void> {
    const { cloud } = this;
    await step(800, 10_000);
    const host = cloud.schedule(server, server.flavor);
    if (host === undefined) throw new Refusal(500, NO_HOST);
    server.host = host;
    cloud.allocate(server, host, server.flavor);
    server.taskState = 'networking';
    await step(1_500, 20_000);
    for (const { uuid, port } of server.networks) this.#plug(server, host, uuid, port);
    this.#mayFail(server, 'failed to allocate the network(s), not rescheduling.');
    cloud.observe(by);
    server.taskState = 'block_device_mapping';
    await step(500, 5_000);
    for (const device of devices)
      if (device.source_type !== 'volume' && device.destination_type === 'volume')
        await this.#makeVolume(server, device, by, step);
    for (const { volume, attachment } of server.mappings)
      this.volumes.complete(volume, attachment, host.name);
    server.taskState = 'spawning';
    await step(3_000, 60_000);
    this.#mayFail(server, 'Failed to provision instance');
    if (!server.isVolumeBacked) server.disk = { content: EMPTY };
    server.launchedAt = cloud.now;
    this.settle(server, 'active', POWER.running);
    cloud.observe(by);
  }

  #mayFail({ id }: Server, why: string): void {
    if (this.cloud.fails()) throw new Refusal(500, `Build of instance ${id} aborted: ${why}`);
  }

  /** A build that failed leaves the record, in ERROR and without a host. */
  #giveUp(server: Server, why: string): void {
    this.releasePorts(server);
    for (const one of server.mappings) this.#unmap(one, 'a person');
    server.mappings = [];
    server.host = undefined;
    server.vmState = 'error';
    this.cloud.allocations.delete(server.id);
    if (server.fault !== undefined) server.fault.message = why;
  }

  #plug(server: Server, host: Compute, uuid: string | undefined, id: string | undefined): void {
    const { cloud } = this;
    const network = cloud.networks.find((one) => one.id === uuid);
    const port = id === undefined ? undefined : cloud.ports.get(id);
    if (port !== undefined) {
      // Another server that asked for it was faster.
      if (port.device !== '')
        throw new Refusal(500, `Build of instance ${server.id} aborted: Port ${id} is still in use.`);
      this.bind(server, port, host);
      return;
    }
    if (network === undefined)
      throw new Refusal(500, `Build of instance ${server.id} aborted: Port ${id} could not be found.`);
    const made: Port = {
      ...{ id: cloud.id(), name: '', project: server.project, network, mac: 'fa:16:3e:00:00:00' },
      ...{ address: cloud.address(network), device: '', owner: '', host: '', tags: [], description: '' },
      ...{ securityGroups: [], createdAt: cloud.now, isNovas: true },
    };
    cloud.ports.set(made.id, made);
    this.bind(server, made, host);
  }

  async #makeVolume(server: Server, device: BlockDevice, by: Doer, step: Step): Promise<void> {
    const { project, flavor, host } = server;
    const size = Number(device.volume_size ?? flavor.disk);
    const image = device.source_type === 'image' ? device.uuid : undefined;
    const volume = this.volumes.create(
      { name: '', project, size, zone: host?.zone, image, type: device.volume_type },
      by,
    );
    this.#map(server, volume, device, false);
    while (volume.status === 'creating') await step(2_000, 4_000);
    if (volume.status !== 'available')
      throw new Refusal(
        500,
        `Build of instance ${server.id} aborted: Volume ${volume.id} did not finish being created even after we waited 3 seconds or 2 attempts. And its status is ${volume.status}.`,
      );
    const mapping = server.mappings.find((one) => one.volume === volume);
    if (mapping !== undefined) mapping.attachment = this.volumes.reserve(volume, server, mapping.device).id;
  }

  #map(server: Server, volume: Volume, device: BlockDevice, isReserved = true): void {
    const name = `/dev/vd${String.fromCharCode(97 + server.mappings.length + (server.isVolumeBacked ? 0 : 1))}`;
    const attachment = isReserved ? this.volumes.reserve(volume, server, name).id : '';
    const { delete_on_termination: deleteOnTermination = false } = device;
    const isRoot = Number(device.boot_index ?? -1) === 0;
    server.mappings.push({ volume, attachment, device: name, deleteOnTermination, isRoot });
  }

  #unmap({ volume, attachment, deleteOnTermination }: Mapping, by: Doer): void {
    this.volumes.release(volume, attachment);
    if (!deleteOnTermination || !this.cloud.volumes.has(volume.id)) return;
    try {
      this.volumes.remove(volume, by);
    } catch (error) {
      // Nova only logs it: the volume is left.
      if (!(error instanceof Refusal)) throw error;
    }
  }

  #delete(server: Server, by: Doer): void {
    const { cloud } = this;
    this.begin(
      server,
      'deleting',
      by,
      async (step) => {
        await step(1_500, 60_000);
        if (cloud.fails()) throw new Refusal(500, 'Failed to terminate process');
        server.isRunning = false;
        server.disk = undefined;
        cloud.observe(by);
        await step(1_500, 60_000);
        this.#dissolve(server, by);
      },
      () => {
        server.vmState = 'error';
      },
    );
  }

  /** The end of its record, and of what belongs to it at the other services. */
  #dissolve(server: Server, by: Doer): void {
    const { cloud } = this;
    this.releasePorts(server);
    for (const one of server.mappings) this.#unmap(one, by);
    cloud.allocations.delete(server.id);
    cloud.allocations.delete(`${server.id}/before`);
    cloud.servers.delete(server.id);
    server.isRunning = false;
    cloud.observe(by);
  }

  /** Nova tries it once, and logs that it failed. */
  #removeSnapshot({ shelvedImage }: Server, by: Doer): void {
    if (shelvedImage === undefined || this.cloud.fails(0.05)) return;
    this.cloud.images.delete(shelvedImage);
    this.cloud.observe(by);
  }

  /** A nova-compute has started again: what it was doing is taken up, or ends in ERROR, or hangs for ever. */
  #restarted(compute: Compute): void {
    for (const [bytes, { host }] of this.cloud.leftBehind)
      if (host === compute)
        void this.cloud.takes(5_000, REAPED_WITHIN_MS).then(() => {
          this.cloud.leftBehind.delete(bytes);
          this.cloud.observe('a person');
        });
    if (!compute.hasEnded) return;
    for (const server of this.cloud.servers.values())
      if (server.host === compute && server.work) this.#resume(server);
  }

  #resume(server: Server): void {
    const task = server.taskState ?? '';
    server.work = undefined;
    const again = (vmState: VmState, power: number): void =>
      this.begin(server, task, 'a person', async (step) => {
        await step(1_000, 5_000);
        this.settle(server, vmState, power);
        this.cloud.observe('a person');
      });
    if (server.vmState === 'building' || /^(rebuild|networking|block_device|spawning)/.test(task)) {
      server.vmState = 'error';
      server.taskState = null;
    } else if (task === 'deleting') this.#delete(server, 'a person');
    else if (task === 'powering-off') again('stopped', POWER.off);
    else if (task === 'powering-on' || task.startsWith('reboot')) again('active', POWER.running);
    else if (/^(pausing|unpausing|resize_prep|resize_migrating|migrating)$/.test(task))
      server.taskState = null;
  }

  #volumeFor({ uuid = '' }: BlockDevice, project: string): Volume {
    const volume = this.cloud.volumes.get(uuid);
    if (volume?.project !== project) throw new Refusal(400, `Volume ${uuid} could not be found.`);
    return volume;
  }

  #anyNetwork(): Server['networks'] {
    return this.cloud.networks.filter(({ isExternal }) => !isExternal).map(({ id: uuid }) => ({ uuid }));
  }
}

/** @throws {Refusal} 409 in another state */
export function assertIn({ id, vmState }: Server, states: readonly VmState[], action: string): void {
  if (!states.includes(vmState))
    throw new Refusal(409, `Cannot '${action}' instance ${id} while it is in vm_state ${vmState}`);
}
