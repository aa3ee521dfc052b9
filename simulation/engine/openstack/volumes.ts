import type { Doer } from '../engine.ts';
import { found, Refusal } from './api.ts';
import type { Cloud } from './cloud.ts';
import type { Attachment, Server, Text, Volume } from './records.ts';

const EMPTY = { guest: undefined, written: [] };
const TYPE = 'lvmdriver-1';
const DELETABLE = ['available', 'error', 'error_restoring', 'error_extending', 'error_managing'];

export interface NewVolume {
  name: string;
  description?: string | null;
  project: string;
  size: number;
  zone?: string | undefined;
  type?: string | undefined;
  metadata?: Text;
  image?: string | undefined;
}

/** Volumes, as Cinder has them. */
export class Volumes {
  readonly #cloud: Cloud;

  constructor(cloud: Cloud) {
    this.#cloud = cloud;
  }

  /** @throws {Refusal} over quota */
  create(wanted: NewVolume, by: Doer): Volume {
    const cloud = this.#cloud;
    const { name, description = null, project, size, zone, type = TYPE, metadata = {}, image } = wanted;
    this.#assertQuota(1, size);
    const volume: Volume = {
      ...{ id: cloud.id(), name, description, project, size, type, metadata: { ...metadata }, image },
      ...{ status: 'creating', zone: zone ?? 'nova', isBootable: image !== undefined, createdAt: cloud.now },
      ...{ attachments: [], bytes: { content: EMPTY } },
    };
    cloud.volumes.set(volume.id, volume);
    cloud.observe(by);
    void cloud.takes(1_500, image === undefined ? 30_000 : 120_000).then(() => {
      if (volume.status !== 'creating') return;
      volume.status = cloud.fails() ? 'error' : 'available';
    });
    return volume;
  }

  /** @throws {Refusal} 400 for a status that it cannot be deleted in */
  remove(volume: Volume, by: Doer, isForced = false): void {
    const cloud = this.#cloud;
    const isAttached = volume.attachments.some((one) => one.isAttached);
    if (isAttached || !(isForced || DELETABLE.includes(volume.status)))
      throw new Refusal(
        400,
        `Invalid volume: Volume status must be ${DELETABLE.join(' or ')} and must not be migrating, attached, belong to a group, have snapshots, awaiting a transfer, or be disassociated from snapshots after volume transfer.`,
      );
    volume.status = 'deleting';
    void cloud.takes(2_000, 60_000).then(() => {
      if (volume.status !== 'deleting' || !cloud.volumes.has(volume.id)) return;
      if (cloud.fails()) {
        volume.status = 'error_deleting';
        return;
      }
      cloud.volumes.delete(volume.id);
      cloud.observe(by);
    });
  }

  extend(volume: Volume, size: number, mayBeAttached: boolean): void {
    const { status } = volume;
    if (size <= volume.size)
      throw new Refusal(
        400,
        `Invalid input received: New size for extend must be greater than current size. (current: ${volume.size}, extended: ${size}).`,
      );
    if (status !== 'available' && !(mayBeAttached && status === 'in-use'))
      throw new Refusal(
        400,
        `Invalid volume: Volume ${volume.id} status must be '{'status': 'available'}' to extend, currently ${status}.`,
      );
    this.#assertQuota(0, size - volume.size);
    volume.status = 'extending';
    void this.#cloud.takes(1_000, 20_000).then(() => {
      if (volume.status !== 'extending') return;
      if (this.#cloud.fails()) {
        volume.status = 'error_extending';
        return;
      }
      volume.size = size;
      volume.status = status;
    });
  }

  /** The record of an attachment that is to come. @throws {Refusal} 400 if the volume is not available */
  reserve(volume: Volume, server: Server, device: string): Attachment {
    if (volume.status !== 'available')
      throw new Refusal(
        400,
        `Invalid input received: Invalid volume: Volume ${volume.id} status must be available or downloading to reserve, but the current status is ${volume.status}. (HTTP 400)`,
      );
    return this.reserveAgain(volume, server, device);
  }

  /** As a server that is offloaded holds its volumes: reserved, and not attached. */
  reserveAgain(volume: Volume, { id: server }: Server, device: string): Attachment {
    const attachment: Attachment = {
      ...{ id: this.#cloud.id(), server, device, host: null, at: this.#cloud.now, isAttached: false },
    };
    volume.attachments.push(attachment);
    volume.status = 'reserved';
    return attachment;
  }

  complete(volume: Volume, id: string, host: string | null): void {
    const attachment = volume.attachments.find((one) => one.id === id);
    if (attachment === undefined) return;
    Object.assign(attachment, { isAttached: true, host, at: this.#cloud.now });
    volume.status = 'in-use';
  }

  /** `DELETE /attachments/ID`. */
  release(volume: Volume, id: string): void {
    volume.attachments = volume.attachments.filter((one) => one.id !== id);
    if (
      volume.attachments.length === 0 &&
      ['reserved', 'attaching', 'in-use', 'detaching'].includes(volume.status)
    )
      volume.status = 'available';
  }

  get(id: string, project: string): Volume {
    const volume = this.#cloud.volumes.get(id);
    return found(volume?.project === project ? volume : undefined, `Volume ${id} could not be found.`);
  }

  usage(): { volumes: number; gigabytes: number } {
    const all = [...this.#cloud.volumes.values()];
    return { volumes: all.length, gigabytes: all.reduce((sum, { size }) => sum + size, 0) };
  }

  #assertQuota(more: number, moreGb: number): void {
    const { quota } = this.#cloud;
    const { volumes, gigabytes } = this.usage();
    const over = (limit: number, wanted: number): boolean => limit >= 0 && wanted > limit;
    const headers = { 'retry-after': '0' };
    if (over(quota.volumes, volumes + more))
      throw new Refusal(
        413,
        `VolumeLimitExceeded: Maximum number of volumes allowed (${quota.volumes}) exceeded for quota 'volumes'.`,
        undefined,
        headers,
      );
    if (over(quota.gigabytes, gigabytes + moreGb))
      throw new Refusal(
        413,
        `VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes quota. Requested ${moreGb}G, quota is ${quota.gigabytes}G and ${gigabytes}G has been consumed.`,
        undefined,
        headers,
      );
  }
}
