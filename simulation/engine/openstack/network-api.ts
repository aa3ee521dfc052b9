import type { Doer } from '../engine.ts';
import { type Asked, found, linksTo, ok, page, Refusal, type Reply, type Route } from './api.ts';
import type { Cloud } from './cloud.ts';
import { floatingView, groupView, networkView, portView, subnetView } from './network-views.ts';
import type { FloatingIp, Network, Port, SecurityGroup } from './records.ts';

type Fields = Record<string, unknown>;
type Taggable = { id: string; project: string; tags: string[] };

/** Neutron's API. */
export class NetworkApi {
  readonly routes: readonly Route[];
  readonly #cloud: Cloud;

  constructor(cloud: Cloud) {
    this.#cloud = cloud;
    const { ports, floatingIps, groups } = cloud;
    this.routes = [
      ['GET', 'networks', (asked) => listing('networks', cloud.networks.map(networkView), asked)],
      ['GET', 'networks/*', (_, id) => ok({ network: networkView(this.#network(id)) })],
      ['GET', 'subnets', (asked) => listing('subnets', cloud.networks.map(subnetView), asked)],
      [
        'GET',
        'ports',
        (asked) =>
          listing(
            'ports',
            this.#own(ports, asked).map((one) => portView(one)),
            asked,
          ),
      ],
      ['POST', 'ports', (asked) => this.#makePort(asked)],
      ['GET', 'ports/*', (asked, id) => ok({ port: portView(this.#find(ports, asked, id, 'Port')) })],
      ['PUT', 'ports/*', (asked, id) => this.#changePort(asked, this.#find(ports, asked, id, 'Port'))],
      [
        'DELETE',
        'ports/*',
        (asked, id) => this.#end(asked, () => cloud.removePort(this.#find(ports, asked, id, 'Port'))),
      ],
      [
        'GET',
        'floatingips',
        (asked) =>
          listing(
            'floatingips',
            this.#own(floatingIps, asked).map((one) => floatingView(this.#cloud, one)),
            asked,
          ),
      ],
      ['POST', 'floatingips', (asked) => this.#makeFloating(asked)],
      [
        'GET',
        'floatingips/*',
        (asked, id) =>
          ok({ floatingip: floatingView(this.#cloud, this.#find(floatingIps, asked, id, 'FloatingIP')) }),
      ],
      [
        'PUT',
        'floatingips/*',
        (asked, id) => this.#changeFloating(asked, this.#find(floatingIps, asked, id, 'FloatingIP')),
      ],
      [
        'DELETE',
        'floatingips/*',
        (asked, id) =>
          this.#end(asked, () => floatingIps.delete(this.#find(floatingIps, asked, id, 'FloatingIP').id)),
      ],
      [
        'GET',
        'security-groups',
        (asked) => listing('security_groups', this.#own(groups, asked).map(groupView), asked),
      ],
      ['POST', 'security-groups', (asked) => this.#makeGroup(asked)],
      [
        'GET',
        'security-groups/*',
        (asked, id) => ok({ security_group: groupView(this.#find(groups, asked, id, 'SecurityGroup')) }),
      ],
      ['DELETE', 'security-groups/*', (asked, id) => this.#removeGroup(asked, id)],
      [
        'GET',
        'security-group-rules',
        (asked) =>
          listing(
            'security_group_rules',
            this.#own(groups, asked).flatMap(({ rules }) => rules),
            asked,
          ),
      ],
      ['POST', 'security-group-rules', (asked) => this.#makeRule(asked)],
      [
        'PUT',
        '(ports|floatingips|security-groups)/*/tags',
        (asked, kind, id) => this.#tag(asked, kind, id, asked.body['tags'] as string[]),
      ],
      [
        'PUT',
        '(ports|floatingips|security-groups)/*/tags/*',
        (asked, kind, id, tag) => this.#tag(asked, kind, id, [tag], true),
      ],
      ['GET', 'quotas/*(?:/details\\.json|/details)', ({ who }) => ok({ quota: this.#quota(who.project) })],
      [
        'GET',
        'quotas/*',
        () => {
          const { port, floatingip, security_group } = cloud.quota;
          return ok({
            quota: { port, floatingip, security_group, network: 100, subnet: 100, security_group_rule: 100 },
          });
        },
      ],
      [
        'GET',
        'extensions',
        () =>
          ok({
            extensions: [
              'standard-attr-tag',
              'tag-ports-during-bulk-creation',
              'quota_details',
              'router',
            ].map((alias) => ({ alias })),
          }),
      ],
    ];
  }

  #own<T extends Taggable>(all: ReadonlyMap<string, T>, { who, query }: Asked): T[] {
    const tags = query.get('tags')?.split(',') ?? [];
    return [...all.values()]
      .filter(({ project }) => who.isAdmin || project === who.project)
      .filter((one) => tags.every((tag) => one.tags.includes(tag)));
  }

  #find<T extends Taggable>(all: ReadonlyMap<string, T>, { who }: Asked, id: string, what: string): T {
    const one = all.get(id);
    const isOwn = one !== undefined && (who.isAdmin || one.project === who.project);
    return found(isOwn ? one : undefined, `${what} ${id} could not be found.`, `${what}NotFound`);
  }

  #end({ by }: { by: Doer }, end: () => unknown): Reply {
    end();
    this.#cloud.observe(by);
    return { status: 204 };
  }

  #network(id: unknown): Network {
    const network = this.#cloud.networks.find((one) => one.id === id);
    return found(network, `Network ${id} could not be found.`, 'NetworkNotFound');
  }

  #makePort(asked: Asked): Reply {
    const wanted = asked.body['port'] as Fields;
    const network = this.#network(wanted['network_id']);
    this.#assertQuota('port', this.#cloud.ports.size);
    const [fixed] = (wanted['fixed_ips'] ?? []) as { ip_address?: string }[];
    const id = this.#cloud.id();
    const port: Port = {
      ...{ id, network, name: String(wanted['name'] ?? ''), project: asked.who.project },
      mac: `fa:16:3e:${id.slice(-6).replace(/(..)(..)(..)/, '$1:$2:$3')}`,
      address: fixed?.ip_address ?? this.#cloud.address(network),
      ...{ device: String(wanted['device_id'] ?? ''), owner: String(wanted['device_owner'] ?? ''), host: '' },
      tags: [...((wanted['tags'] ?? []) as string[])],
      description: String(wanted['description'] ?? ''),
      securityGroups: (wanted['security_groups'] ?? []) as string[],
      ...{ createdAt: this.#cloud.now, isNovas: false },
    };
    this.#cloud.ports.set(id, port);
    this.#cloud.observe(asked.by);
    return { status: 201, body: { port: portView(port) } };
  }

  #changePort({ body, by }: Asked, port: Port): Reply {
    const {
      name,
      description,
      device_id: device,
      device_owner: owner,
      security_groups: groups,
    } = body['port'] as Fields;
    Object.assign(port, {
      ...(name !== undefined && { name }),
      ...(description !== undefined && { description }),
      ...(device !== undefined && { device }),
      ...(owner !== undefined && { owner }),
      ...(groups !== undefined && { securityGroups: groups }),
    });
    this.#cloud.observe(by);
    return ok({ port: portView(port) });
  }

  #makeFloating(asked: Asked): Reply {
    const wanted = asked.body['floatingip'] as Fields;
    const network = this.#network(wanted['floating_network_id']);
    if (!network.isExternal)
      throw new Refusal(
        400,
        `Bad floatingip request: Network ${network.id} is not a valid external network.`,
      );
    this.#assertQuota('floatingip', this.#cloud.floatingIps.size);
    const floating: FloatingIp = {
      ...{
        id: this.#cloud.id(),
        project: asked.who.project,
        network,
        address: this.#cloud.address(network),
        port: null,
      },
      ...{ tags: [], description: String(wanted['description'] ?? ''), createdAt: this.#cloud.now },
    };
    this.#associate(asked, floating, (wanted['port_id'] ?? null) as string | null);
    this.#cloud.floatingIps.set(floating.id, floating);
    this.#cloud.observe(asked.by);
    return { status: 201, body: { floatingip: floatingView(this.#cloud, floating) } };
  }

  #changeFloating(asked: Asked, floating: FloatingIp): Reply {
    const { port_id: port, description } = asked.body['floatingip'] as Fields;
    if (port !== undefined) this.#associate(asked, floating, port as string | null);
    if (description !== undefined) floating.description = String(description);
    this.#cloud.observe(asked.by);
    return ok({ floatingip: floatingView(this.#cloud, floating) });
  }

  #associate(asked: Asked, floating: FloatingIp, id: string | null): void {
    const port = id === null ? undefined : this.#find(this.#cloud.ports, asked, id, 'Port');
    const other = port && this.#cloud.floatingIpOf(port);
    if (other !== undefined && other !== floating)
      throw new Refusal(
        409,
        `Cannot associate floating IP ${floating.address} (${floating.id}) with port ${id} using fixed IP ${port?.address}, as that fixed IP already has a floating IP on external network ${floating.network.id}.`,
        'FloatingIPPortAlreadyAssociated',
      );
    floating.port = id;
  }

  /** Names are not unique, as everywhere: a second group of the name is another one. */
  #makeGroup({ body, who, by }: Asked): Reply {
    const { name = '', description = '' } = body['security_group'] as { name?: string; description?: string };
    this.#assertQuota('security_group', this.#cloud.groups.size);
    const egress = ['IPv4', 'IPv6'].map((ethertype) => ({
      id: this.#cloud.id(),
      direction: 'egress',
      ethertype,
      protocol: null,
    }));
    const group: SecurityGroup = {
      id: this.#cloud.id(),
      name,
      project: who.project,
      description,
      tags: [],
      rules: egress,
    };
    this.#cloud.groups.set(group.id, group);
    this.#cloud.observe(by);
    return { status: 201, body: { security_group: groupView(group) } };
  }

  #removeGroup(asked: Asked, id: string): Reply {
    const group = this.#find(this.#cloud.groups, asked, id, 'SecurityGroup');
    if ([...this.#cloud.ports.values()].some(({ securityGroups }) => securityGroups.includes(id)))
      throw new Refusal(409, `Security Group ${id} in use.`, 'SecurityGroupInUse');
    return this.#end(asked, () => this.#cloud.groups.delete(group.id));
  }

  #makeRule(asked: Asked): Reply {
    const wanted = asked.body['security_group_rule'] as Fields;
    const group = this.#find(this.#cloud.groups, asked, String(wanted['security_group_id']), 'SecurityGroup');
    const same = group.rules.find((rule) =>
      Object.entries(wanted).every(([key, value]) => rule[key] === value),
    );
    if (same !== undefined)
      throw new Refusal(
        409,
        `Security group rule already exists. Rule id is ${same.id}.`,
        'SecurityGroupRuleExists',
      );
    const rule = { ethertype: 'IPv4', ...wanted, id: this.#cloud.id() };
    group.rules.push(rule);
    this.#cloud.observe(asked.by);
    return { status: 201, body: { security_group_rule: rule } };
  }

  #tag(asked: Asked, kind: string, id: string, tags: string[], isAdded = false): Reply {
    const { ports, floatingIps, groups } = this.#cloud;
    const all: ReadonlyMap<string, Taggable> =
      { ports, floatingips: floatingIps, 'security-groups': groups }[kind] ?? ports;
    const one = this.#find(all, asked, id, 'TagResource');
    one.tags = isAdded ? [...new Set([...one.tags, ...tags])] : [...tags];
    this.#cloud.observe(asked.by);
    return isAdded ? { status: 201 } : ok({ tags: one.tags });
  }

  #assertQuota(name: 'port' | 'floatingip' | 'security_group', used: number): void {
    const limit = this.#cloud.quota[name];
    if (limit >= 0 && used >= limit)
      throw new Refusal(409, `Quota exceeded for resources: ['${name}'].`, 'OverQuota');
  }

  #quota(project: string): object {
    const { quota, ports, floatingIps, groups } = this.#cloud;
    const all: [string, number, ReadonlyMap<string, Taggable>][] = [
      ['port', quota.port, ports],
      ['floatingip', quota.floatingip, floatingIps],
      ['security_group', quota.security_group, groups],
    ];
    const used = (of: ReadonlyMap<string, Taggable>) =>
      [...of.values()].filter((one) => one.project === project).length;
    return Object.fromEntries(all.map(([name, limit, of]) => [name, { limit, used: used(of), reserved: 0 }]));
  }
}

/** Filters by what the query names, and pages only where it is asked to. */
function listing(name: string, items: readonly { id: string }[], asked: Asked): Reply {
  const known = [...asked.query].filter(
    ([key]) => !/^(limit|marker|tags|fields|sort_key|sort_dir|page_reverse)$/.test(key),
  );
  const fits = (item: Fields): boolean =>
    known.every(([key, value]) => !(key in item) || String(item[key]) === value);
  const fitting = items.filter((item) => fits(item as unknown as Fields));
  const { items: shown, next } = page(fitting, asked, Number.MAX_SAFE_INTEGER);
  return ok({ [name]: shown, ...linksTo(next, name) });
}
