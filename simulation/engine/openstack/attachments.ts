import { type Asked, found, ok, Refusal, type Reply, type Route } from './api.ts';
import type { Cloud } from './cloud.ts';
import { interfaceView, mappingView } from './compute-views.ts';
import type { Mapping, Server, VmState } from './records.ts';
import { assertIn, type Servers } from './servers.ts';

const ATTACHABLE: readonly VmState[] = [
  'active',
  'paused',
  'stopped',
  'resized',
  'soft-delete',
  'shelved',
  'shelved_offloaded',
];
const PLUGGABLE: readonly VmState[] = ['active', 'paused', 'stopped'];

/** The part of Nova's API that plugs volumes and ports into servers. */
export class AttachmentApi {
  readonly routes: readonly Route[];
  readonly #servers: Servers;
  readonly #cloud: Cloud;

  constructor(servers: Servers) {
    this.#servers = servers;
    this.#cloud = servers.cloud;
    const [volumes, ports] = ['servers/*/os-volume_attachments', 'servers/*/os-interface'];
    this.routes = [
      [
        'GET',
        volumes,
        (asked, id) =>
          ok({
            volumeAttachments: servers.find(asked, id).mappings.map((one) => mappingView(one, id, asked)),
          }),
      ],
      ['POST', volumes, (asked, id) => this.#attach(asked, id)],
      [
        'GET',
        `${volumes}/*`,
        (asked, id, volume) =>
          ok({ volumeAttachment: mappingView(this.#mapping(asked, id, volume), id, asked) }),
      ],
      ['DELETE', `${volumes}/*`, (asked, id, volume) => this.#detach(asked, id, volume)],
      [
        'GET',
        ports,
        (asked, id) =>
          ok({ interfaceAttachments: this.#cloud.portsOf(servers.find(asked, id)).map(interfaceView) }),
      ],
      ['POST', ports, (asked, id) => this.#plug(asked, id)],
      ['DELETE', `${ports}/*`, (asked, id, port) => this.#unplug(asked, id, port)],
    ];
  }

  #mapping(asked: Asked, id: string, volume: string): Mapping {
    const mapping = this.#servers.find(asked, id).mappings.find((one) => one.volume.id === volume);
    return found(mapping, `Instance ${id} is not attached to volume ${volume}`);
  }

  #attach(asked: Asked, id: string): Reply {
    const server = this.#servers.find(asked, id);
    const wanted = asked.body['volumeAttachment'] as { volumeId: string; delete_on_termination?: boolean };
    const { volumes } = this.#servers;
    const volume = volumes.get(wanted.volumeId, asked.who.project);
    assertFree(server, ATTACHABLE, 'attach_volume');
    if (server.mappings.some((one) => one.volume === volume))
      throw new Refusal(400, `Invalid volume: volume ${volume.id} already attached`);
    const letter = 'bcdefghijklmnopqrstuvwxyz'
      .split('')
      .find((one) => !server.mappings.some(({ device }) => device === `/dev/vd${one}`));
    const device = `/dev/vd${letter}`;
    const attachment = volumes.reserve(volume, server, device).id;
    const mapping = {
      volume,
      attachment,
      device,
      deleteOnTermination: wanted.delete_on_termination === true,
      isRoot: false,
    };
    server.mappings.push(mapping);
    const { host } = server;
    if (host === undefined) volumes.complete(volume, attachment, null);
    else void this.#attachAt(server, mapping);
    this.#cloud.observe(asked.by);
    return ok({ volumeAttachment: mappingView(mapping, id, asked) });
  }

  async #attachAt(server: Server, mapping: Mapping): Promise<void> {
    const { volume, attachment } = mapping;
    await this.#cloud.takes(1_000, 20_000);
    await server.host?.answers();
    if (!server.mappings.includes(mapping) || volume.status !== 'reserved') return;
    volume.status = 'attaching';
    await this.#cloud.takes(500, 5_000);
    if (!server.mappings.includes(mapping)) return;
    if (this.#cloud.fails()) {
      this.#servers.volumes.release(volume, attachment);
      server.mappings = server.mappings.filter((one) => one !== mapping);
    } else if (server.host !== undefined)
      this.#servers.volumes.complete(volume, attachment, server.host.name);
    this.#cloud.observe('a person');
  }

  #detach(asked: Asked, id: string, volumeId: string): Reply {
    const mapping = this.#mapping(asked, id, volumeId);
    const server = this.#servers.find(asked, id);
    if (mapping.isRoot) throw new Refusal(400, 'Cannot detach a root device volume');
    assertFree(server, ATTACHABLE, 'detach_volume');
    this.detach(server, mapping, asked);
    return { status: 202 };
  }

  /** @throws {Refusal} 400 while the volume is not in use */
  detach(server: Server, mapping: Mapping, { by }: Pick<Asked, 'by'>): void {
    const cloud = this.#cloud;
    const { volume, attachment } = mapping;
    const end = (): void => {
      this.#servers.volumes.release(volume, attachment);
      server.mappings = server.mappings.filter((one) => one !== mapping);
      cloud.observe(by);
    };
    if (server.host === undefined) {
      end();
      return;
    }
    if (volume.status !== 'in-use')
      throw new Refusal(
        400,
        `Invalid volume: Volume ${volume.id} status must be in-use to detach, but the current status is ${volume.status}.`,
      );
    volume.status = 'detaching';
    const work = async (): Promise<void> => {
      await cloud.takes(1_500, 30_000);
      await server.host?.answers();
      if (!server.mappings.includes(mapping)) return;
      // The guest does not let go of the disk.
      if (cloud.fails() && volume.status === 'detaching') volume.status = 'in-use';
      else end();
    };
    void work();
  }

  #plug(asked: Asked, id: string): Reply {
    const server = this.#servers.find(asked, id);
    assertFree(server, PLUGGABLE, 'attach_interface');
    const { port_id: wanted = '' } = asked.body['interfaceAttachment'] as { port_id?: string };
    const port = found(this.#cloud.ports.get(wanted), `Port ${wanted} could not be found.`);
    if (port.device !== '') throw new Refusal(409, `Port ${wanted} is still in use.`);
    if (server.host !== undefined) this.#servers.bind(server, port, server.host);
    this.#cloud.observe(asked.by);
    return ok({ interfaceAttachment: interfaceView(port) });
  }

  #unplug(asked: Asked, id: string, portId: string): Reply {
    const server = this.#servers.find(asked, id);
    assertFree(server, PLUGGABLE, 'detach_interface');
    const port = found(
      this.#cloud.portsOf(server).find((one) => one.id === portId),
      `Port ${portId} could not be found.`,
    );
    void this.#cloud.takes(1_000, 10_000).then(() => {
      if (port.device !== id) return;
      if (port.isNovas) this.#cloud.removePort(port);
      else Object.assign(port, { device: '', owner: '', host: '' });
      this.#cloud.observe(asked.by);
    });
    return { status: 202 };
  }
}

function assertFree(server: Server, states: readonly VmState[], action: string): void {
  assertIn(server, states, action);
  if (server.taskState !== null)
    throw new Refusal(
      409,
      `Cannot '${action}' instance ${server.id} while it is in task_state ${server.taskState}`,
    );
}
