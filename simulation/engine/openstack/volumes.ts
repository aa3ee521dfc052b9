import type { Doer } from '../engine.ts';
import { Refusal } from '../surroundings.ts';
import { assertMetadata, type Fields, type Text } from './api.ts';
import type { Cloud } from './cloud.ts';
import { EMPTY, type Mapping, type Server, type Volume } from './records.ts';

/** What the driver asks Cinder for. */
interface NewVolume {
  name: string;
  size: number;
  metadata?: Text;
}

/** Volumes, as Cinder has them and as Nova attaches them. */
export class Volumes {
  readonly #cloud: Cloud;

  constructor(cloud: Cloud) {
    this.#cloud = cloud;
  }

  /** @throws {Refusal} 413 over quota */
  create({ name, size, metadata = {} }: NewVolume, project: string): Volume {
    const cloud = this.#cloud;
    assertMetadata(metadata);
    cloud.assertQuota(project, 413, { volumes: 1, gigabytes: size });
    const volume: Volume = {
      id: cloud.id(),
      name,
      project_id: project,
      size,
      status: 'available',
      metadata,
      createdAt: cloud.now,
      attachments: [],
      bytes: { content: EMPTY },
    };
    cloud.volumes.set(volume.id, volume);
    this.#takes(volume, 'creating', 60_000, 'error');
    return volume;
  }

  /** @throws {Refusal} 400 in a status that it cannot be deleted in */
  remove(volume: Volume, by: Doer): void {
    if (!/^(available|error|error_extending)$/.test(volume.status))
      throw new Refusal(400, `Invalid volume: it cannot be deleted while it is ${volume.status}.`);
    const done = (): void => {
      this.#cloud.volumes.delete(volume.id);
      this.#cloud.observe(by);
    };
    this.#takes(volume, 'deleting', 60_000, 'error_deleting', done);
  }

  /** `POST /volumes/ID/action`. @throws {Refusal} 400 for one that is attached, or has that size */
  extend(volume: Volume, body: Fields): void {
    const { new_size: size } = body['os-extend'] as { new_size: number };
    if (size <= volume.size || volume.status !== 'available')
      throw new Refusal(400, `Invalid volume: ${volume.id} is ${volume.status} and has ${volume.size} GiB.`);
    this.#cloud.assertQuota(volume.project_id, 413, { gigabytes: size - volume.size });
    const done = (): void => {
      volume.size = size;
    };
    this.#takes(volume, 'extending', 20_000, 'error_extending', done);
  }

  /** Adds a volume to a server. @throws {Refusal} 400 for a volume that is not available */
  map(server: Server, id: string, isRoot = false): Mapping {
    const volume = this.#cloud.volumes.get(id);
    if (volume?.project_id !== server.project_id) throw new Refusal(404, `Volume ${id} could not be found.`);
    if (volume.status !== 'available')
      throw new Refusal(
        400,
        `Invalid volume: Volume ${id} status must be available, and is ${volume.status}.`,
      );
    const mapping = { volume, attachment: this.reserve(volume, server), isRoot };
    server.mappings.push(mapping);
    return mapping;
  }

  /** Returns the id of an attachment that is to come. */
  reserve(volume: Volume, server: Server): string {
    const id = this.#cloud.id();
    volume.attachments.push({ id, server: server.id, isAttached: false });
    volume.status = 'reserved';
    return id;
  }

  complete(volume: Volume, id: string): void {
    const attachment = volume.attachments.find((one) => one.id === id);
    if (attachment === undefined) return;
    attachment.isAttached = true;
    volume.status = 'in-use';
  }

  release(volume: Volume, id: string): void {
    volume.attachments = volume.attachments.filter((one) => one.id !== id);
    if (volume.attachments.length === 0 && /^(reserved|in-use|detaching)$/.test(volume.status))
      volume.status = 'available';
  }

  /** `POST /servers/ID/os-volume_attachments`. @throws {Refusal} */
  attach(server: Server, body: Fields, by: Doer): Fields {
    const { volumeId } = body['volumeAttachment'] as { volumeId: string };
    assertFree(server, 'attach_volume');
    const mapping = this.map(server, volumeId);
    const { volume } = mapping;
    const done = (): void => this.complete(volume, mapping.attachment);
    if (server.host === undefined) done();
    else void this.#atHost(server, mapping, by, done, () => this.#unmap(server, mapping));
    return body;
  }

  /** `DELETE /servers/ID/os-volume_attachments/ID`. @throws {Refusal} */
  detach(server: Server, id: string, by: Doer): void {
    const mapping = server.mappings.find(({ volume }) => volume.id === id);
    if (mapping === undefined)
      throw new Refusal(404, `Instance ${server.id} is not attached to volume ${id}`);
    const { volume, isRoot } = mapping;
    if (isRoot) throw new Refusal(400, 'Cannot detach a root device volume');
    assertFree(server, 'detach_volume');
    const done = (): void => this.#unmap(server, mapping);
    if (server.host === undefined) {
      done();
      return;
    }
    if (volume.status !== 'in-use')
      throw new Refusal(400, `Invalid volume: Volume ${id} status must be in-use, and is ${volume.status}.`);
    volume.status = 'detaching';
    void this.#atHost(server, mapping, by, done, () => {
      // The guest does not let go of the disk.
      volume.status = 'in-use';
    });
  }

  /** Waits until Cinder has done it, or could not. */
  #takes(volume: Volume, status: string, longMs: number, failed: string, done?: () => void): void {
    volume.status = status;
    void this.#cloud.task(longMs).then(() => {
      if (volume.status !== status) return;
      const hasFailed = this.#cloud.fails();
      volume.status = hasFailed ? failed : 'available';
      if (!hasFailed) done?.();
    });
  }

  async #atHost(server: Server, mapping: Mapping, by: Doer, done: () => void, failed: () => void) {
    await this.#cloud.task(30_000);
    await server.host?.answers();
    // What is off its host meanwhile has other attachments.
    if (server.host === undefined || !server.mappings.includes(mapping)) return;
    if (this.#cloud.fails()) failed();
    else done();
    this.#cloud.observe(by);
  }

  #unmap(server: Server, mapping: Mapping): void {
    this.release(mapping.volume, mapping.attachment);
    server.mappings = server.mappings.filter((one) => one !== mapping);
  }
}

/** @throws {Refusal} 409 in a state that volumes cannot be plugged in, or while something else is done */
function assertFree({ id, vmState, task }: Server, action: string): void {
  const isBarred = /^(building|suspended|rescued|error)$/.test(vmState);
  const state = isBarred ? `vm_state ${vmState}` : `task_state ${task}`;
  if (isBarred || task !== null)
    throw new Refusal(409, `Cannot '${action}' instance ${id} while it is in ${state}`);
}
