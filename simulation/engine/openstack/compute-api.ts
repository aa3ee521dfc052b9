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
  toSecond,
} from './api.ts';
import { AttachmentApi } from './attachments.ts';
import type { Cloud } from './cloud.ts';
import type { Compute } from './compute.ts';
import { actionsOf, aggregateOf, flavorView, keypairView, serverView, statusOf } from './compute-views.ts';
import { assertMetadata, type NewServer, usageOf } from './new-server.ts';
import type { Server, Text, VmState } from './records.ts';
import { type ActionArgs, ServerActions } from './server-actions.ts';
import { assertIn, type Servers } from './servers.ts';

const LABELLED: readonly VmState[] = ['active', 'paused', 'suspended', 'stopped'];

/** Nova's API. */
export class ComputeApi {
  readonly actions: ServerActions;
  readonly attachments: AttachmentApi;
  readonly routes: readonly Route[];
  readonly #servers: Servers;
  readonly #cloud: Cloud;

  constructor(servers: Servers) {
    this.#servers = servers;
    this.#cloud = servers.cloud;
    this.actions = new ServerActions(servers);
    this.attachments = new AttachmentApi(servers);
    const cloud = this.#cloud;
    this.routes = [
      ['GET', 'servers(?:/detail)?', (asked) => this.#list(asked)],
      ['POST', 'servers', (asked) => this.#create(asked)],
      ['GET', 'servers/*', (asked, id) => ok({ server: this.#show(servers.find(asked, id, true), asked) })],
      ['PUT', 'servers/*', (asked, id) => this.#rename(asked, id)],
      ['DELETE', 'servers/*', (asked, id) => this.#remove(asked, id)],
      ['POST', 'servers/*/action', (asked, id) => this.#act(asked, id)],
      ['GET', 'servers/*/metadata', (asked, id) => ok({ metadata: this.#servers.find(asked, id).metadata })],
      ['(?:PUT|POST)', 'servers/*/metadata', (asked, id) => this.#label(asked, id)],
      ['DELETE', 'servers/*/metadata/*', (asked, id, key) => this.#unlabel(asked, id, key)],
      ...this.attachments.routes,
      [
        'GET',
        'flavors(?:/detail)?',
        (asked) => {
          const { items, next } = page([...cloud.flavors.values()], asked);
          return ok({ flavors: items.map(flavorView), ...linksTo(next, 'flavors') });
        },
      ],
      [
        'GET',
        'flavors/*',
        (_, id) =>
          ok({ flavor: flavorView(found(cloud.flavors.get(id), `Flavor ${id} could not be found.`)) }),
      ],
      [
        'GET',
        'os-availability-zone(?:/detail)?',
        (asked) => ok({ availabilityZoneInfo: this.#zones(asked) }),
      ],
      [
        'GET',
        'servers/*/os-instance-actions',
        (asked, id) => ok({ instanceActions: actionsOf(servers.find(asked, id)) }),
      ],
      [
        'GET',
        'os-keypairs',
        () => ok({ keypairs: [...cloud.keypairs.values()].map((one) => ({ keypair: keypairView(one) })) }),
      ],
      [
        'POST',
        'os-keypairs',
        ({ body }) => this.#addKey(body['keypair'] as { name: string; public_key: string }),
      ],
      [
        'GET',
        'os-keypairs/*',
        (_, name) =>
          ok({ keypair: keypairView(found(cloud.keypairs.get(name), `Keypair ${name} not found`)) }),
      ],
      [
        'DELETE',
        'os-keypairs/*',
        (_, name) => {
          found(cloud.keypairs.get(name), `Keypair ${name} not found for user`);
          cloud.keypairs.delete(name);
          return { status: 204 };
        },
      ],
      ['GET', 'limits', ({ who }) => ok({ limits: { rate: [], absolute: this.#limits(who.project) } })],
      [
        'GET',
        'os-quota-sets/*(?:/detail)?',
        (asked, id) => ok({ quota_set: { id, ...this.#quota(id, asked) } }),
      ],
      ['GET', 'os-aggregates', (asked) => this.#aggregates(asked)],
      ['GET', 'os-hypervisors/detail', (asked) => this.#hypervisors(asked)],
      ['PUT', 'servers/*/tags/*', (asked, id, tag) => this.#tag(asked, id, tag, true)],
      ['DELETE', 'servers/*/tags/*', (asked, id, tag) => this.#tag(asked, id, tag, false)],
      ['GET', 'os-services', (asked) => this.#services(asked)],
    ];
  }

  /** Newest first. Those that are SOFT_DELETED are in no listing but that of an administrator who asks for deleted ones. */
  #list(asked: Asked): Reply {
    const { query, who } = asked;
    const isAll = query.has('all_tenants') && who.isAdmin;
    if (query.has('all_tenants') && !who.isAdmin) assertAdmin(asked);
    const [name, status] = [query.get('name'), query.get('status')];
    const isDeleted = who.isAdmin && /^(1|t|true|yes)$/i.test(query.get('deleted') ?? '');
    const tags = query.get('tags')?.split(',') ?? [];
    const shown = [...this.#cloud.servers.values()]
      .filter((one) => isAll || one.project === who.project)
      .filter((one) => (one.vmState === 'soft-delete') === isDeleted)
      .filter((one) => name === null || new RegExp(name).test(one.name))
      .filter((one) => status === null || statusOf(one) === status.toUpperCase())
      .filter((one) => tags.every((tag) => one.tags.includes(tag)))
      .reverse();
    // Who pages or filters is told nothing of the servers of a cell that is down.
    const isSkipped = this.#cloud.isCellDown && [...query.keys()].some((key) => key !== 'all_tenants');
    const { items, next } = page(isSkipped ? [] : shown, asked);
    const isDetail = asked.path.endsWith('/detail');
    const servers = items.map((one) =>
      isDetail ? this.#show(one, asked) : { id: one.id, name: one.name, links: [] },
    );
    return ok({ servers, ...linksTo(next, 'servers') });
  }

  /** In full; of a cell that is down, what Nova's own database says. */
  #show(server: Server, asked: Asked): object {
    if (!this.#cloud.isCellDown) return serverView(this.#cloud, server, asked);
    const { id, project, createdAt } = server;
    return { id, status: 'UNKNOWN', tenant_id: project, created: toSecond(createdAt), links: [] };
  }

  #create({ body, who, by }: Asked): Reply {
    const server = this.#servers.create(body['server'] as NewServer, who, by);
    const { id, securityGroups } = server;
    const groups = securityGroups.map((name) => ({ name }));
    const answer = {
      id,
      links: [],
      'OS-DCF:diskConfig': 'MANUAL',
      security_groups: groups,
      adminPass: 'secret',
    };
    return { status: 202, body: { server: answer } };
  }

  #rename(asked: Asked, id: string): Reply {
    const server = this.#servers.find(asked, id);
    const { name, description } = asked.body['server'] as { name?: string; description?: string };
    if (name !== undefined) server.name = name;
    if (description !== undefined) server.description = description;
    this.#cloud.observe(asked.by);
    return ok({ server: serverView(this.#cloud, server, asked) });
  }

  #remove(asked: Asked, id: string): Reply {
    const server = this.#servers.find(asked, id);
    this.#assertUnlocked(server, asked);
    this.#servers.remove(server, asked.by);
    return { status: 204 };
  }

  #act(asked: Asked, id: string): Reply {
    const [[name = '', args] = []] = Object.entries(asked.body);
    const { by, who } = asked;
    return this.actions.act(this.#servers.find(asked, id), name, (args ?? {}) as ActionArgs, by, who.isAdmin);
  }

  #label(asked: Asked, id: string): Reply {
    const server = this.#servers.find(asked, id);
    const metadata = asked.body['metadata'] as Text;
    assertMetadata(metadata);
    assertIn(server, LABELLED, 'update metadata');
    server.metadata = asked.method === 'PUT' ? { ...metadata } : { ...server.metadata, ...metadata };
    this.#cloud.observe(asked.by);
    return ok({ metadata: server.metadata });
  }

  #unlabel(asked: Asked, id: string, key: string): Reply {
    const server = this.#servers.find(asked, id);
    if (server.metadata[key] === undefined) throw new Refusal(404, 'Metadata item was not found');
    assertIn(server, LABELLED, 'delete metadata');
    const { [key]: _, ...rest } = server.metadata;
    server.metadata = rest;
    this.#cloud.observe(asked.by);
    return { status: 204 };
  }

  /** Only an administrator may see the hosts of each. */
  #zones(asked: Asked): object[] {
    const isDetail = asked.path.endsWith('/detail');
    if (isDetail) assertAdmin(asked);
    const zones = [...new Set(this.#cloud.computes.map(({ zone }) => zone))];
    return zones.map((zoneName) => {
      const own = this.#cloud.computes.filter((one) => one.zone === zoneName);
      const available = own.some((one) => one.isUp && !one.isDisabled);
      const host = ({ name, isUp, isDisabled }: Compute): [string, object] => [
        name,
        { 'nova-compute': { available: isUp, active: !isDisabled, updated_at: null } },
      ];
      const hosts = isDetail && available ? Object.fromEntries(own.map(host)) : null;
      return { zoneName, zoneState: { available }, hosts };
    });
  }

  #addKey({ name, public_key: publicKey }: { name: string; public_key: string }): Reply {
    if (this.#cloud.keypairs.has(name)) throw new Refusal(409, `Key pair '${name}' already exists.`);
    this.#cloud.keypairs.set(name, { name, publicKey });
    return { status: 201, body: { keypair: keypairView({ name, publicKey }) } };
  }

  #limits(project: string): object {
    const { quota } = this.#cloud;
    const { instances, cores, ram } = usageOf(this.#cloud, project);
    return {
      ...{ maxTotalInstances: quota.instances, maxTotalCores: quota.cores, maxTotalRAMSize: quota.ram },
      ...{
        maxTotalKeypairs: quota.key_pairs,
        maxServerMeta: 128,
        maxServerGroups: 10,
        maxServerGroupMembers: 10,
      },
      ...{
        totalInstancesUsed: instances,
        totalCoresUsed: cores,
        totalRAMUsed: ram,
        totalServerGroupsUsed: 0,
      },
    };
  }

  #quota(project: string, { path }: Asked): object {
    const used: Record<string, number> = { ...usageOf(this.#cloud, project), key_pairs: 0 };
    const isDetail = path.endsWith('/detail');
    const { instances, cores, ram, key_pairs } = this.#cloud.quota;
    const limits = {
      instances,
      cores,
      ram,
      key_pairs,
      metadata_items: 128,
      server_groups: 10,
      server_group_members: 10,
    };
    const detail = ([name, limit]: [string, number]): [string, unknown] => [
      name,
      isDetail ? { limit, in_use: used[name] ?? 0, reserved: 0 } : limit,
    ];
    return Object.fromEntries(Object.entries(limits).map(detail));
  }

  #aggregates(asked: Asked): Reply {
    assertAdmin(asked);
    const zones = [...new Set(this.#cloud.computes.map(({ zone }) => zone))].filter(
      (zone) => zone !== 'nova',
    );
    const aggregates = zones.map((zone, index) => ({
      ...{ id: index + 1, uuid: aggregateOf(zone), name: zone, availability_zone: zone },
      hosts: this.#cloud.computes.filter((one) => one.zone === zone).map(({ name }) => name),
      metadata: { availability_zone: zone },
    }));
    return ok({ aggregates });
  }

  #hypervisors(asked: Asked): Reply {
    assertAdmin(asked);
    const hypervisors = this.#cloud.computes.map(({ id, name, isUp, isDisabled }) => ({
      ...{
        id,
        hypervisor_hostname: name,
        hypervisor_type: 'QEMU',
        service: { id, host: name, disabled_reason: null },
      },
      ...{ state: isUp ? 'up' : 'down', status: isDisabled ? 'disabled' : 'enabled' },
    }));
    return ok({ hypervisors });
  }

  #tag(asked: Asked, id: string, tag: string, isAdded: boolean): Reply {
    const server = this.#servers.find(asked, id);
    if (!isAdded && !server.tags.includes(tag)) throw new Refusal(404, `Instance ${id} has no tag '${tag}'`);
    server.tags = isAdded ? [...new Set([...server.tags, tag])] : server.tags.filter((one) => one !== tag);
    this.#cloud.observe(asked.by);
    return { status: isAdded ? 201 : 204 };
  }

  #services(asked: Asked): Reply {
    assertAdmin(asked);
    const services = this.#cloud.computes.map((one) => ({
      ...{ id: one.id, binary: 'nova-compute', host: one.name, zone: one.zone, forced_down: false },
      ...{ status: one.isDisabled ? 'disabled' : 'enabled', state: one.isUp ? 'up' : 'down' },
    }));
    return ok({ services });
  }

  #assertUnlocked({ id, isLocked }: Server, { who }: Asked): void {
    if (isLocked && !who.isAdmin) throw new Refusal(409, `Instance ${id} is locked`);
  }
}
