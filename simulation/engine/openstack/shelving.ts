import type { Doer } from '../engine.ts';
import { Refusal } from './api.ts';
import type { Cloud } from './cloud.ts';
import { type Image, POWER, type Server } from './records.ts';
import { EMPTY, type Servers, type Step } from './servers.ts';

/** Takes servers off their hosts, and brings them back. */
export class Shelving {
  readonly #servers: Servers;
  readonly #cloud: Cloud;

  constructor(servers: Servers) {
    this.#servers = servers;
    this.#cloud = servers.cloud;
  }

  /** Shut down, copied into an image, and taken off its host. One that boots from a volume has no image. */
  shelve(server: Server, by: Doer): void {
    const cloud = this.#cloud;
    const image: Image | undefined = server.isVolumeBacked ? undefined : this.#snapshotOf(server);
    this.#servers.begin(
      server,
      'shelving',
      by,
      async (step) => {
        await step(3_000, 60_000);
        server.isRunning = false;
        cloud.observe(by);
        if (image !== undefined) {
          server.taskState = 'shelving_image_uploading';
          image.status = 'saving';
          await step(5_000, 120_000);
          if (cloud.fails()) throw new Refusal(500, 'Failed to upload the snapshot');
          image.status = 'active';
          server.shelvedImage = image.id;
        }
        if (cloud.parts.keepsShelved && image !== undefined)
          this.#servers.settle(server, 'shelved', POWER.off);
        else await this.offload(server, by, step);
      },
      () => {
        // Its guest is off, and Nova takes it for ACTIVE until it looks.
        if (image !== undefined) cloud.images.delete(image.id);
        this.#servers.guestStopped(server, by);
      },
    );
  }

  #snapshotOf(server: Server): Image {
    const { id, name, project, user, image: from = '' } = server;
    const cloud = this.#cloud;
    const image: Image = {
      ...{ id: cloud.id(), name: `${name}-shelved`, project, isPublic: false, status: 'queued' },
      ...{ minDisk: server.flavor.disk, createdAt: cloud.now, bytes: undefined },
      properties: {
        instance_uuid: id,
        image_type: 'snapshot',
        base_image_ref: from,
        user_id: user,
        owner_id: project,
      },
    };
    cloud.images.set(image.id, image);
    return image;
  }

  async offload(server: Server, by: Doer, step: Step): Promise<void> {
    const cloud = this.#cloud;
    if (server.shelvedImage !== undefined)
      Object.assign(server, { vmState: 'shelved', taskState: 'shelving_offloading' });
    await step(2_000, 20_000);
    const image = cloud.images.get(server.shelvedImage ?? '');
    if (image !== undefined) image.bytes = server.disk;
    server.disk = undefined;
    for (const mapping of server.mappings) {
      this.#servers.volumes.release(mapping.volume, mapping.attachment);
      mapping.attachment = this.#servers.volumes.reserveAgain(mapping.volume, server, mapping.device).id;
    }
    cloud.allocations.delete(server.id);
    this.#servers.settle(server, 'shelved_offloaded', POWER.off);
    server.host = undefined;
    cloud.observe(by);
  }

  /** Where no host can take it, it stays as it is: 202 promised nothing. */
  unshelve(server: Server, zone: string | undefined, by: Doer): void {
    const cloud = this.#cloud;
    if (server.vmState === 'shelved') {
      this.#servers.begin(server, 'powering-on', by, async (step) => {
        await step(2_000, 20_000);
        this.#servers.settle(server, 'active', POWER.running);
        cloud.observe(by);
      });
      return;
    }
    if (zone !== undefined) {
      if (!cloud.computes.some((one) => one.zone === zone && one.isUp))
        throw new Refusal(400, 'The requested availability zone is not available');
      server.zone = zone;
    }
    this.#servers.begin(
      server,
      'unshelving',
      by,
      async (step) => {
        await step(500, 5_000);
        const image = cloud.images.get(server.shelvedImage ?? '');
        if (server.shelvedImage !== undefined && image === undefined) {
          server.vmState = 'error';
          throw new Refusal(500, `Unshelve attempted but the image ${server.shelvedImage} cannot be found.`);
        }
        const host = cloud.schedule(server, server.flavor);
        if (host === undefined) {
          server.taskState = null;
          return;
        }
        server.host = host;
        cloud.allocate(server, host, server.flavor);
        server.taskState = 'spawning';
        for (const port of cloud.portsOf(server)) port.host = host.name;
        await step(4_000, 90_000);
        if (cloud.fails()) throw new Refusal(500, 'Failed to spawn');
        for (const { volume, attachment } of server.mappings)
          this.#servers.volumes.complete(volume, attachment, host.name);
        if (image !== undefined) server.disk = image.bytes ?? { content: EMPTY };
        if (image !== undefined) image.bytes = undefined;
        this.#servers.settle(server, 'active', POWER.running);
        server.shelvedImage = undefined;
        cloud.observe(by);
        if (image !== undefined && !cloud.fails(0.05)) cloud.images.delete(image.id);
      },
      () => {
        server.host = undefined;
        cloud.allocations.delete(server.id);
      },
    );
  }
}
