import { isDeepStrictEqual } from 'node:util';
import type * as shown from '../../../src/drivers/openstack/api.ts';
import { Refusal } from '../surroundings.ts';
import {
  type Asked,
  assertAdmin,
  type Fields,
  metadataOf,
  type Route,
  restOf,
  toMicros,
  toSecond,
} from './api.ts';
import type { Cloud } from './cloud.ts';
import type { Service } from './identity.ts';
import type { FloatingIp, Image, Port, Server, Volume } from './records.ts';
import type { Servers } from './servers.ts';
import { statusOf } from './transitions.ts';

type Limits = readonly (readonly [quota: keyof Cloud['quota'], most: string, used: string])[];
const COMPUTE_LIMITS: Limits = [
  ['instances', 'maxTotalInstances', 'totalInstancesUsed'],
  ['cores', 'maxTotalCores', 'totalCoresUsed'],
  ['ram', 'maxTotalRAMSize', 'totalRAMUsed'],
];
const VOLUME_LIMITS: Limits = [
  ['volumes', 'maxTotalVolumes', 'totalVolumesUsed'],
  ['gigabytes', 'maxTotalVolumeGigabytes', 'totalGigabytesUsed'],
];
/** Of Neutron: no run comes near its quotas. */
const NO_LIMIT = { limit: -1, used: 0, reserved: 0 };

/** The APIs of the services: the requests that the driver sends, and what it reads of their answers. */
export function routesOf(servers: Servers): Readonly<Record<Exclude<Service, 'keystone'>, readonly Route[]>> {
  const { cloud } = servers;
  return {
    nova: novaOf(servers),
    neutron: neutronOf(cloud),
    glance: glanceOf(cloud),
    cinder: cinderOf(servers),
    placement: [
      ['GET', '', () => ({ versions: [{ min_version: '1.0', max_version: '1.39' }] })],
      ['GET', 'allocation_candidates', (asked) => candidates(cloud, asked)],
    ],
  };
}

function novaOf(servers: Servers): Route[] {
  const { cloud, volumes } = servers;
  const { routes, find } = restOf<Server>({
    name: 'server',
    all: cloud.servers,
    // Of a server whose cell is down, Nova's own database has little: no filter finds it.
    view: (server) => (cloud.isCellDown ? { id: server.id, status: 'UNKNOWN' } : serverView(server)),
    isListed: ({ vmState }) => vmState !== 'soft-delete',
    // A server without a host is in a cell of its own, whose faults no list has.
    hidden: ({ host }) => (host === undefined ? ['fault'] : []),
    create: (wanted, { who, by }) => servers.create(wanted as never, who, by),
    remove: (server, { by, who }) => servers.remove(unlocked(server, who), by),
  });
  const change = (asked: Asked, id: string): Server => {
    const server = find(asked, id);
    return /^(unlock|os-getConsoleOutput)$/.test(Object.keys(asked.body)[0] ?? '')
      ? server
      : unlocked(server, asked.who);
  };
  /** A server that may take metadata. */
  const labelled = (asked: Asked, id: string): Server => {
    const server = find(asked, id);
    if (!/^(active|paused|suspended|stopped)$/.test(server.vmState))
      throw new Refusal(409, `Cannot update metadata of ${id} while it is in vm_state ${server.vmState}`);
    return server;
  };
  const attachments = 'servers/*/os-volume_attachments';
  return [
    ['GET', '', () => ({ version: { min_version: '2.1', version: '2.93' } })],
    ...routes,
    ['POST', 'servers/*/action', (asked, id) => servers.act(change(asked, id), asked.body, asked.by)],
    ...metadataOf('servers', labelled),
    ['DELETE', 'servers/*/tags/*', (asked, id, tag) => untag(find(asked, id), tag)],
    ['POST', attachments, (asked, id) => volumes.attach(change(asked, id), asked.body, asked.by)],
    ['DELETE', `${attachments}/*`, (asked, id, of) => void volumes.detach(change(asked, id), of, asked.by)],
    ['GET', 'flavors/detail', () => ({ flavors: [...cloud.flavors.values()] })],
    ['GET', 'os-availability-zone', (asked) => zones(cloud, asked, false)],
    ['GET', 'os-availability-zone/detail', (asked) => zones(cloud, asked, true)],
    ['GET', 'os-hypervisors/detail', (asked) => hypervisors(cloud, asked)],
    ['GET', 'limits', (asked) => limits(cloud, COMPUTE_LIMITS, asked)],
  ];
}

/** A server that this project may change: what an administrator has locked, only administrators. @throws {Refusal} 409 */
function unlocked(server: Server, { isAdmin }: Asked['who']): Server {
  if (server.isLocked && !isAdmin) throw new Refusal(409, `Instance ${server.id} is locked`);
  return server;
}

function untag(server: Server, tag: string): undefined {
  server.tags = server.tags.filter((one) => one !== tag);
}

function limits(cloud: Cloud, names: Limits, { who }: Asked): Fields {
  const used = cloud.usage(who.project);
  const absolute = names.flatMap(([name, most, total]) => [
    [most, cloud.quota[name]],
    [total, used[name]],
  ]);
  return { limits: { absolute: Object.fromEntries(absolute) } };
}

function serverView(server: Server): shown.Server {
  const { id, name, metadata, tags, fault, host, launchedAt } = server;
  const status = statusOf(server);
  return {
    id,
    name,
    status,
    created: toSecond(server.createdAt),
    updated: toSecond(server.updatedAt),
    metadata,
    tags,
    locked: server.isLocked,
    ...(status === 'ERROR' && fault !== undefined && { fault: { message: fault } }),
    'OS-EXT-STS:task_state': server.task,
    'OS-EXT-STS:power_state': server.power,
    'OS-EXT-AZ:availability_zone': host?.zone ?? server.zone ?? '',
    'OS-SRV-USG:launched_at': launchedAt === undefined ? null : toMicros(launchedAt),
  };
}

/** Only an administrator may see the hosts of each. */
function zones({ computes }: Cloud, { who }: Asked, isDetail: boolean): Fields {
  if (isDetail) assertAdmin(who);
  const byName = Map.groupBy(computes, ({ zone }) => zone);
  const availabilityZoneInfo = [...byName].map(([zoneName, own]) => {
    const hosts = own.map(({ name, isUp, isDisabled }) => [
      name,
      { 'nova-compute': { available: isUp, active: !isDisabled } },
    ]);
    return {
      zoneName,
      zoneState: { available: own.some(({ isUp, isDisabled }) => isUp && !isDisabled) },
      hosts: isDetail ? Object.fromEntries(hosts) : null,
    };
  });
  return { availabilityZoneInfo };
}

function hypervisors({ computes }: Cloud, { who }: Asked): Fields {
  assertAdmin(who);
  return { hypervisors: computes.map(({ id, name }) => ({ id, service: { host: name } })) };
}

function neutronOf(cloud: Cloud): Route[] {
  const { ports, floatingIps, groups } = cloud;
  const assertFree = ({ port_id: port }: Fields): void => {
    if (port !== undefined && [...floatingIps.values()].some((one) => one.port_id === port))
      throw new Refusal(409, `Port ${port} already has a floating IP.`);
  };
  return [
    ...restOf({ name: 'network', all: cloud.networks }).routes,
    ...restOf<Port>({
      name: 'port',
      all: ports,
      isShownToAdmins: true,
      create: (wanted, { who }) => {
        const port = {
          id: cloud.id(),
          device_id: '',
          created_at: toSecond(cloud.now),
          fixed_ips: [{ ip_address: cloud.address(wanted['network_id']) }],
          project_id: who.project,
          ...wanted,
        } as unknown as Port;
        ports.set(port.id, port);
        return port;
      },
      // A floating IP that it had is free, and still there.
      remove: (port) => {
        ports.delete(port.id);
        for (const one of floatingIps.values()) if (one.port_id === port.id) one.port_id = null;
      },
    }).routes,
    ...restOf<FloatingIp>({
      name: 'floatingip',
      all: floatingIps,
      isShownToAdmins: true,
      create: (wanted, { who }) => {
        assertFree(wanted);
        const floating = {
          id: cloud.id(),
          floating_ip_address: cloud.address(wanted['floating_network_id']),
          project_id: who.project,
          ...wanted,
        } as unknown as FloatingIp;
        floatingIps.set(floating.id, floating);
        return floating;
      },
      change: (floating, wanted) => {
        assertFree(wanted);
        Object.assign(floating, wanted);
      },
      remove: ({ id }) => floatingIps.delete(id),
    }).routes,
    ...restOf<shown.Named>({
      name: 'security_group',
      all: groups,
      isShownToAdmins: true,
      // Names are not unique: a second group of the name is another one.
      create: ({ name, description }, { who }) => {
        const id = cloud.id();
        const of = { name: String(name), description: String(description ?? '') };
        const group = { id, ...of, project_id: who.project, security_group_rules: [] };
        groups.set(id, group);
        return group;
      },
      remove: ({ id }) => groups.delete(id),
    }).routes,
    ['POST', 'security-group-rules', ({ body }) => addRule(cloud, body['security_group_rule'] as never)],
    ['GET', 'quotas/*/details.json', () => ({ quota: { port: NO_LIMIT, floatingip: NO_LIMIT } })],
  ];
}

function addRule({ groups }: Cloud, rule: { security_group_id: string; direction: string }): Fields {
  const group = groups.get(rule.security_group_id);
  if (group === undefined) throw new Refusal(404, 'Security group could not be found.');
  const { security_group_rules: rules = [] } = group;
  if (rules.some((one) => isDeepStrictEqual(one, rule)))
    throw new Refusal(409, 'Security group rule already exists.');
  group.security_group_rules = [...rules, rule];
  return { security_group_rule: rule };
}

/** An administrator is shown the images of all projects. */
function glanceOf({ images }: Cloud): readonly Route[] {
  return restOf<Image>({
    name: 'image',
    all: images,
    view: ({ id, name, status, project_id: owner, isPublic, createdAt, server }) => ({
      id,
      name,
      status,
      owner,
      visibility: isPublic ? 'public' : 'private',
      created_at: toSecond(createdAt),
      ...(server !== undefined && { instance_uuid: server, image_type: 'snapshot' }),
    }),
    isShownToAdmins: true,
    remove: ({ id }) => images.delete(id),
  }).routes;
}

function cinderOf({ cloud, volumes }: Servers): Route[] {
  const { routes, find } = restOf<Volume>({
    name: 'volume',
    all: cloud.volumes,
    view: volumeView,
    create: (wanted, { who }) => volumes.create(wanted as never, who.project),
    remove: (volume, { by }) => volumes.remove(volume, by),
  });
  return [
    ['GET', '', () => ({ versions: [{ min_version: '3.0', version: '3.70' }] })],
    ...routes,
    ['POST', 'volumes/*/action', (asked, id) => void volumes.extend(find(asked, id), asked.body)],
    ...metadataOf('volumes', find),
    ['GET', 'limits', (asked) => limits(cloud, VOLUME_LIMITS, asked)],
  ];
}

/** What is only reserved is not shown. */
function volumeView({ id, name, status, size, createdAt, metadata, attachments }: Volume): shown.Volume {
  return {
    id,
    name,
    status,
    size,
    created_at: toMicros(createdAt),
    metadata,
    attachments: attachments
      .filter(({ isAttached }) => isAttached)
      .map(({ id: attachment_id, server: server_id }) => ({ attachment_id, server_id })),
  };
}

/** The hosts with room for the resources, `VCPU:2,MEMORY_MB:2048`. One that is disabled has a trait that Berth excludes. */
function candidates(cloud: Cloud, { query, who }: Asked): Fields {
  assertAdmin(who);
  const parts = (query.get('resources') ?? '').split(',').map((part) => part.split(':'));
  const resources = Object.fromEntries(parts.map(([name, amount]) => [name, Number(amount)]));
  const able = cloud.computes.filter((one) => !one.isDisabled && cloud.hasRoom(one, resources));
  const summaries = able.map((compute) => {
    const shown = Object.entries(compute.capacity).map(([name, capacity]) => [
      name,
      { capacity, used: cloud.used(compute, name) },
    ]);
    return [compute.id, { root_provider_uuid: compute.id, resources: Object.fromEntries(shown) }];
  });
  return { provider_summaries: Object.fromEntries(summaries) };
}
