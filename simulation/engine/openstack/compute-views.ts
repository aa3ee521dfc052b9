import { createHash } from 'node:crypto';
import { type Asked, toMicros, toSecond } from './api.ts';
import type { Cloud } from './cloud.ts';
import type { Flavor, Mapping, Server, VmState } from './records.ts';

/** What Nova calls a server, by its state and what is done with it: nova/api/openstack/common.py. */
const STATUS: Record<VmState, string> = {
  building: 'BUILD',
  active: 'ACTIVE',
  stopped: 'SHUTOFF',
  paused: 'PAUSED',
  suspended: 'SUSPENDED',
  rescued: 'RESCUE',
  resized: 'VERIFY_RESIZE',
  shelved: 'SHELVED',
  shelved_offloaded: 'SHELVED_OFFLOADED',
  'soft-delete': 'SOFT_DELETED',
  error: 'ERROR',
};
const RUNNING_TASKS: readonly [RegExp, string, readonly VmState[]][] = [
  [/^(rebooting|reboot_pending|reboot_started)$/, 'REBOOT', ['active']],
  [/^reboot.*_hard$/, 'HARD_REBOOT', ['active']],
  [/^rebuild/, 'REBUILD', ['active', 'stopped', 'error']],
  [/^migrating$/, 'MIGRATING', ['active', 'paused']],
  [/^resize_(prep|migrating|migrated|finish)$/, 'RESIZE', ['active', 'stopped']],
  [/^resize_reverting$/, 'REVERT_RESIZE', ['resized']],
];
export function statusOf({ vmState, taskState }: Server): string {
  const task = RUNNING_TASKS.find(([task, , of]) => of.includes(vmState) && task.test(taskState ?? ''));
  return task?.[1] ?? STATUS[vmState];
}

/** A server, as `GET /servers/ID` shows it. Only administrators see where it is. */
export function serverView(cloud: Cloud, server: Server, { version, who }: Asked): object {
  const { host, project, flavor, fault, image, launchedAt, mappings, taskState, vmState } = server;
  const status = statusOf(server);
  return {
    ...{ id: server.id, name: server.name, status, tenant_id: project, user_id: server.user },
    metadata: server.metadata,
    hostId: host === undefined ? '' : createHash('sha224').update(`${project}${host.name}`).digest('hex'),
    image: image === undefined || server.isVolumeBacked ? '' : { id: image, links: [] },
    flavor: version < 2_047 ? { id: flavor.id, links: [] } : embedded(flavor),
    ...{ created: toSecond(server.createdAt), updated: toSecond(server.updatedAt), links: [] },
    addresses: vmState === 'building' ? {} : addressesOf(cloud, server),
    ...{ accessIPv4: '', accessIPv6: '', 'OS-DCF:diskConfig': 'MANUAL', config_drive: server.configDrive },
    ...(status === 'ERROR' &&
      fault !== undefined && { fault: { ...fault, at: undefined, created: toSecond(fault.at) } }),
    'OS-EXT-AZ:availability_zone': host?.zone ?? server.zone ?? '',
    key_name: server.keyName,
    'OS-SRV-USG:launched_at': launchedAt === undefined ? null : toMicros(launchedAt),
    'OS-SRV-USG:terminated_at': null,
    security_groups: server.securityGroups.map((name) => ({ name })),
    ...{
      'OS-EXT-STS:task_state': taskState,
      'OS-EXT-STS:vm_state': vmState,
      'OS-EXT-STS:power_state': server.power,
    },
    'os-extended-volumes:volumes_attached': mappings.map(({ volume, deleteOnTermination }) => ({
      ...{ id: volume.id, delete_on_termination: deleteOnTermination },
    })),
    ...{ locked: server.isLocked, locked_reason: null, description: server.description, tags: server.tags },
    ...{ trusted_image_certificates: null, progress: 0 },
    ...(who.isAdmin && {
      ...{ host_status: host?.status ?? '', 'OS-EXT-SRV-ATTR:host': host?.name ?? null },
      ...{
        'OS-EXT-SRV-ATTR:hypervisor_hostname': host?.name ?? null,
        'OS-EXT-SRV-ATTR:user_data': server.userData || null,
      },
    }),
  };
}

function addressesOf(cloud: Cloud, server: Server): object {
  const all: Record<string, object[]> = {};
  for (const port of cloud.portsOf(server)) {
    const floating = cloud.floatingIpOf(port);
    const one = (addr: string, type: string) => ({
      version: 4,
      addr,
      'OS-EXT-IPS:type': type,
      'OS-EXT-IPS-MAC:mac_addr': port.mac,
    });
    const shown = all[port.network.name] ?? [];
    shown.push(
      one(port.address, 'fixed'),
      ...(floating === undefined ? [] : [one(floating.address, 'floating')]),
    );
    all[port.network.name] = shown;
  }
  return all;
}

/** The aggregate that makes hosts an availability zone. */
export function aggregateOf(zone: string): string {
  const hash = createHash('sha1').update(zone).digest('hex');
  return `aaaaaaaa-0000-4000-8000-${hash.slice(0, 12)}`;
}

function embedded({ name, vcpus, ram, disk, extraSpecs }: Flavor): object {
  return { original_name: name, vcpus, ram, disk, ephemeral: 0, swap: 0, extra_specs: extraSpecs };
}

export function flavorView({ id, name, vcpus, ram, disk, extraSpecs }: Flavor): object {
  const rest = {
    'OS-FLV-EXT-DATA:ephemeral': 0,
    'OS-FLV-DISABLED:disabled': false,
    'os-flavor-access:is_public': true,
  };
  return {
    id,
    name,
    vcpus,
    ram,
    disk,
    swap: 0,
    rxtx_factor: 1,
    description: null,
    links: [],
    ...rest,
    extra_specs: extraSpecs,
  };
}

export function mappingView(
  { volume, device, deleteOnTermination, attachment }: Mapping,
  serverId: string,
  { version }: Asked,
): object {
  return {
    ...{ volumeId: volume.id, serverId, device, tag: null },
    ...(version < 2_089 ? { id: volume.id } : { attachment_id: attachment, bdm_uuid: attachment }),
    ...(version >= 2_079 && { delete_on_termination: deleteOnTermination }),
  };
}

export function interfaceView({
  id,
  mac,
  address,
  network,
}: {
  id: string;
  mac: string;
  address: string;
  network: { id: string; subnet: string };
}): object {
  return {
    ...{ port_id: id, net_id: network.id, mac_addr: mac, port_state: 'ACTIVE', tag: null },
    fixed_ips: [{ subnet_id: network.subnet, ip_address: address }],
  };
}

export function keypairView({ name, publicKey }: { name: string; publicKey: string }): object {
  return { name, public_key: publicKey, fingerprint: '', type: 'ssh' };
}

/** Newest first. */
export function actionsOf({ id, actions }: Server): object[] {
  return actions.toReversed().map(({ action, at, hasFailed }, index) => ({
    ...{ action, instance_uuid: id, request_id: `req-${actions.length - index}` },
    ...{ start_time: toMicros(at), message: hasFailed ? 'Error' : null },
  }));
}
