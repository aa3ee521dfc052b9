import {
  type Asked,
  assertAdmin,
  found,
  linksTo,
  ok,
  page,
  Refusal,
  type Reply,
  type Route,
  toMicros,
  toSecond,
} from './api.ts';
import type { Cloud } from './cloud.ts';
import type { Image, Text, Volume } from './records.ts';
import type { Volumes } from './volumes.ts';

interface NewVolumeBody {
  name?: string | null;
  description?: string | null;
  size: number;
  availability_zone?: string | null;
  volume_type?: string | null;
  metadata?: Text;
  imageRef?: string;
}

/** Cinder's API. */
export class VolumeApi {
  readonly routes: readonly Route[];
  readonly #cloud: Cloud;
  readonly #volumes: Volumes;

  constructor(cloud: Cloud, volumes: Volumes) {
    this.#cloud = cloud;
    this.#volumes = volumes;
    this.routes = [
      ['GET', 'volumes(?:/detail)?', (asked) => this.#list(asked)],
      ['POST', 'volumes', (asked) => this.#create(asked)],
      ['GET', 'volumes/*', (asked, id) => ok({ volume: volumeView(this.#find(asked, id), asked) })],
      ['PUT', 'volumes/*', (asked, id) => this.#change(asked, id)],
      [
        'DELETE',
        'volumes/*',
        (asked, id) => {
          this.#volumes.remove(this.#find(asked, id), asked.by);
          return { status: 202 };
        },
      ],
      ['POST', 'volumes/*/action', (asked, id) => this.#act(asked, this.#find(asked, id))],
      ['(?:POST|PUT)', 'volumes/*/metadata', (asked, id) => this.#label(asked, id)],
      [
        'DELETE',
        'volumes/*/metadata/*',
        (asked, id, key) => {
          const volume = this.#find(asked, id);
          found(volume.metadata[key], `Volume ${id} has no metadata with key ${key}.`);
          const { [key]: _, ...rest } = volume.metadata;
          volume.metadata = rest;
          return ok({});
        },
      ],
      ['GET', 'attachments(?:/detail)?', (asked) => ok({ attachments: this.#attachments(asked) })],
      ['DELETE', 'attachments/*', (asked, id) => this.#release(asked, id)],
      [
        'GET',
        'types',
        () =>
          ok({ volume_types: [{ id: cloud.region, name: 'lvmdriver-1', is_public: true, extra_specs: {} }] }),
      ],
      [
        'GET',
        'os-availability-zone',
        () => ok({ availabilityZoneInfo: [{ zoneName: 'nova', zoneState: { available: true } }] }),
      ],
      [
        'GET',
        'limits',
        () => {
          const { volumes: count, gigabytes } = volumes.usage();
          const limits = {
            maxTotalVolumes: cloud.quota.volumes,
            maxTotalVolumeGigabytes: cloud.quota.gigabytes,
          };
          return ok({
            limits: {
              rate: [],
              absolute: { ...limits, totalVolumesUsed: count, totalGigabytesUsed: gigabytes },
            },
          });
        },
      ],
      [
        'GET',
        'os-quota-sets/*',
        ({ query }, id) => {
          const usage = volumes.usage();
          const { volumes: count, gigabytes } = cloud.quota;
          const show = (limit: number, used: number) =>
            query.get('usage') === 'True' ? { limit, in_use: used, reserved: 0 } : limit;
          return ok({
            quota_set: {
              id,
              volumes: show(count, usage.volumes),
              gigabytes: show(gigabytes, usage.gigabytes),
            },
          });
        },
      ],
    ];
  }

  #find({ who }: Asked, id: string): Volume {
    return this.#volumes.get(id, who.project);
  }

  #list(asked: Asked): Reply {
    const name = asked.query.get('name');
    const own = [...this.#cloud.volumes.values()].filter(({ project }) => project === asked.who.project);
    const { items, next } = page(own.filter((one) => name === null || one.name === name).reverse(), asked);
    return ok({ volumes: items.map((one) => volumeView(one, asked)), ...linksTo(next, 'volumes') });
  }

  #create(asked: Asked): Reply {
    const body = asked.body['volume'] as NewVolumeBody;
    if (!Number.isInteger(body.size) || body.size < 1)
      throw new Refusal(400, `Invalid input for field/attribute size. Value: ${body.size}.`);
    const { availability_zone: zone, volume_type: type, imageRef: image, metadata = {} } = body;
    if (zone != null && zone !== 'nova') throw new Refusal(400, `Availability zone '${zone}' is invalid.`);
    if (Object.values(metadata).some((value) => value.length > 255))
      throw new Refusal(400, 'Invalid input for field/attribute metadata.');
    const wanted = {
      name: body.name ?? '',
      description: body.description ?? null,
      project: asked.who.project,
      size: body.size,
    };
    const volume = this.#volumes.create(
      { ...wanted, metadata, image, zone: zone ?? undefined, type: type ?? undefined },
      asked.by,
    );
    return { status: 202, body: { volume: volumeView(volume, asked) } };
  }

  #change(asked: Asked, id: string): Reply {
    const volume = this.#find(asked, id);
    const { name, description, metadata } = asked.body['volume'] as Partial<NewVolumeBody>;
    if (name != null) volume.name = name;
    if (description !== undefined) volume.description = description;
    if (metadata !== undefined) volume.metadata = { ...metadata };
    this.#cloud.observe(asked.by);
    return ok({ volume: volumeView(volume, asked) });
  }

  #label(asked: Asked, id: string): Reply {
    const volume = this.#find(asked, id);
    const metadata = asked.body['metadata'] as Text;
    volume.metadata = asked.method === 'PUT' ? { ...metadata } : { ...volume.metadata, ...metadata };
    this.#cloud.observe(asked.by);
    return ok({ metadata: volume.metadata });
  }

  #act(asked: Asked, volume: Volume): Reply {
    const [[name = '', args] = []] = Object.entries(asked.body) as [string, Record<string, unknown>][];
    if (name === 'os-extend')
      this.#volumes.extend(volume, Number(args?.['new_size']), asked.version >= 3_042);
    else {
      assertAdmin(asked);
      if (name === 'os-reset_status') volume.status = String(args?.['status'] ?? volume.status);
      else if (name === 'os-force_delete') this.#volumes.remove(volume, asked.by, true);
      else if (name === 'os-force_detach')
        for (const { id, server } of volume.attachments) {
          const holder = this.#cloud.servers.get(server);
          if (holder !== undefined) holder.mappings = holder.mappings.filter((one) => one.volume !== volume);
          this.#volumes.release(volume, id);
        }
      else throw new Refusal(400, `There is no such action: ${name}`);
    }
    this.#cloud.observe(asked.by);
    return { status: 202 };
  }

  #attachments({ who, query }: Asked): object[] {
    const wanted = query.get('volume_id');
    const own = [...this.#cloud.volumes.values()].filter(({ project }) => project === who.project);
    return own
      .filter(({ id }) => wanted === null || id === wanted)
      .flatMap(({ id: volume_id, attachments }) =>
        attachments.map(({ id, server, isAttached }) => ({
          id,
          volume_id,
          instance: server,
          status: isAttached ? 'attached' : 'reserved',
        })),
      );
  }

  /** Since 2023 only Nova may remove one of a server that is there (CVE-2023-2088). */
  #release(_: Asked, id: string): Reply {
    const volume = [...this.#cloud.volumes.values()].find(({ attachments }) =>
      attachments.some((one) => one.id === id),
    );
    const of = found(volume, `Volume attachment could not be found with filter: attachment_id = ${id}.`);
    const server = of.attachments.find((one) => one.id === id)?.server ?? '';
    if (this.#cloud.servers.get(server)?.mappings.some(({ attachment }) => attachment === id))
      throw new Refusal(409, `Detach volume from instance ${server} using the Compute API`);
    this.#volumes.release(of, id);
    return ok({ attachments: [] });
  }
}

function volumeView(volume: Volume, { who }: Asked): object {
  const { id, status, size, zone, createdAt, name, description, type, metadata, image } = volume;
  return {
    ...{
      id,
      status,
      size,
      availability_zone: zone,
      created_at: toMicros(createdAt),
      updated_at: null,
      name,
      description,
    },
    ...{ volume_type: type, snapshot_id: null, source_volid: null, metadata, links: [], user_id: who.user },
    ...{
      bootable: String(volume.isBootable),
      encrypted: false,
      multiattach: false,
      replication_status: null,
    },
    ...(image !== undefined && { volume_image_metadata: { image_id: image } }),
    // What is only reserved is not shown.
    attachments: volume.attachments.flatMap(
      ({ id: attachment_id, server: server_id, device, host, at, isAttached }) =>
        isAttached
          ? [
              {
                id,
                volume_id: id,
                attachment_id,
                server_id,
                device,
                host_name: who.isAdmin ? host : null,
                attached_at: toMicros(at),
              },
            ]
          : [],
    ),
  };
}

/** Glance's API. */
export class ImageApi {
  readonly routes: readonly Route[];
  readonly #cloud: Cloud;

  constructor(cloud: Cloud) {
    this.#cloud = cloud;
    this.routes = [
      ['GET', 'images', (asked) => this.#list(asked)],
      ['GET', 'images/*', (asked, id) => ok(imageView(this.#find(asked, id)))],
      [
        'DELETE',
        'images/*',
        (asked, id) => {
          const image = this.#find(asked, id);
          if (image.project !== asked.who.project && !asked.who.isAdmin)
            throw new Refusal(403, 'You are not authorized to complete delete_image action.');
          cloud.images.delete(id);
          cloud.observe(asked.by);
          return { status: 204 };
        },
      ],
    ];
  }

  #seen({ who }: Asked): Image[] {
    return [...this.#cloud.images.values()].filter((one) => one.isPublic || one.project === who.project);
  }

  #find(asked: Asked, id: string): Image {
    return found(
      this.#seen(asked).find((one) => one.id === id),
      `No image found with ID ${id}`,
    );
  }

  /** Any property filters. */
  #list(asked: Asked): Reply {
    const filters = [...asked.query].filter(
      ([key]) => !/^(limit|marker|sort|sort_key|sort_dir|member_status)$/.test(key),
    );
    const fitting = this.#seen(asked)
      .reverse()
      .filter((one) => filters.every(([key, value]) => String(imageView(one)[key]) === value));
    const { items, next } = page(fitting, asked, 1_000);
    const link = next === undefined ? {} : { next: `/v2/images?${next.split('?')[1]}` };
    return ok({ images: items.map(imageView), first: '/v2/images', schema: '/v2/schemas/images', ...link });
  }
}

function imageView({
  id,
  name,
  status,
  project,
  isPublic,
  minDisk,
  createdAt,
  properties,
}: Image): Record<string, unknown> {
  const [at, visibility] = [toSecond(createdAt), isPublic ? 'public' : 'private'];
  return {
    ...properties,
    ...{
      id,
      name,
      status,
      owner: project,
      visibility,
      min_disk: minDisk,
      min_ram: 0,
      tags: [],
      protected: false,
    },
    ...{
      disk_format: 'qcow2',
      container_format: 'bare',
      size: 2 ** 29,
      os_hidden: false,
      created_at: at,
      updated_at: at,
    },
  };
}
