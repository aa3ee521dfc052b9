import { Refusal } from './api.ts';
import type { Cloud } from './cloud.ts';
import type { Server, Text } from './records.ts';

export interface BlockDevice {
  source_type: string;
  destination_type?: string;
  uuid?: string;
  boot_index?: number | string | null;
  volume_size?: number;
  volume_type?: string;
  delete_on_termination?: boolean;
}

export interface NewServer {
  name: string;
  flavorRef: string;
  imageRef?: string;
  availability_zone?: string;
  networks?: 'none' | 'auto' | { uuid?: string; port?: string }[];
  block_device_mapping_v2?: BlockDevice[];
  user_data?: string;
  config_drive?: boolean | string;
  metadata?: Text;
  tags?: string[];
  key_name?: string;
  description?: string | null;
  security_groups?: { name: string }[];
}

/** What Nova checks before it answers. @throws {Refusal} 400, or 409 for a port in use */
export function assertSound(cloud: Cloud, wanted: NewServer, boots: BlockDevice | undefined): void {
  const { imageRef, networks, metadata = {}, user_data: userData = '', availability_zone: zone } = wanted;
  const image = imageRef || (boots?.source_type === 'image' ? boots.uuid : undefined);
  if (networks === undefined)
    throw new Refusal(400, "Invalid input for field/attribute server. 'networks' is a required property");
  if (boots === undefined && !imageRef)
    throw new Refusal(
      400,
      'Block Device Mapping is Invalid: You specified more local devices than the limit allows',
    );
  if (image !== undefined && cloud.images.get(image)?.status !== 'active')
    throw new Refusal(400, 'Can not find requested image');
  if (!/\S/.test(wanted.name) || wanted.name.length > 255 || userData.length > 65_535)
    throw new Refusal(400, 'Invalid input for field/attribute name or user_data.');
  assertMetadata(metadata);
  if (zone !== undefined && !cloud.computes.some((one) => one.zone === zone && one.isUp))
    throw new Refusal(400, 'The requested availability zone is not available');
  if (wanted.key_name !== undefined && !cloud.keypairs.has(wanted.key_name))
    throw new Refusal(400, 'Invalid key_name provided.');
  assertPorts(cloud, Array.isArray(networks) ? networks : []);
}

function assertPorts(cloud: Cloud, networks: Server['networks']): void {
  for (const { port: id } of networks) {
    const port = id === undefined ? undefined : cloud.ports.get(id);
    if (id !== undefined && port === undefined) throw new Refusal(400, `Port ${id} could not be found.`);
    if (port !== undefined && port.device !== '') throw new Refusal(409, `Port ${id} is still in use.`);
  }
}

/** Quota counts every server, also one that is offloaded or in ERROR. */
export function assertRoom(cloud: Cloud, { flavor, project }: Server): void {
  const { instances, cores, ram } = usageOf(cloud, project);
  const after = {
    instances: [1, instances],
    cores: [flavor.vcpus, cores],
    ram: [flavor.ram, ram],
  } as const;
  for (const [name, [more, used]] of Object.entries(after)) {
    const allowed = cloud.quota[name as keyof typeof after];
    if (allowed >= 0 && used + more > allowed)
      throw new Refusal(
        403,
        `Quota exceeded for ${name}: Requested ${more}, but already used ${used} of ${allowed} ${name}`,
      );
  }
}

export function usageOf(cloud: Cloud, project: string): Record<'instances' | 'cores' | 'ram', number> {
  const own = [...cloud.servers.values()].filter((one) => one.project === project);
  return {
    instances: own.length,
    cores: own.reduce((sum, { flavor }) => sum + flavor.vcpus, 0),
    ram: own.reduce((sum, { flavor }) => sum + flavor.ram, 0),
  };
}

/** Keys and values have at most 255 characters, and there are at most 128. */
export function assertMetadata(metadata: Text): void {
  const entries = Object.entries(metadata);
  if (entries.some(([key, value]) => key.length > 255 || typeof value !== 'string' || value.length > 255))
    throw new Refusal(400, 'Invalid input for field/attribute metadata.');
  if (entries.length > 128) throw new Refusal(403, 'Maximum number of metadata items exceeds 128');
}
