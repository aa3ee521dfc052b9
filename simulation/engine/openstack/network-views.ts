import { toSecond } from './api.ts';
import type { Cloud } from './cloud.ts';
import type { FloatingIp, Network, Port, SecurityGroup } from './records.ts';

export function portView(port: Port): { id: string } {
  const isBound = port.host !== '';
  return {
    ...{
      id: port.id,
      name: port.name,
      network_id: port.network.id,
      project_id: port.project,
      tenant_id: port.project,
    },
    ...{
      mac_address: port.mac,
      admin_state_up: true,
      status: isBound ? 'ACTIVE' : 'DOWN',
      description: port.description,
    },
    ...{ device_id: port.device, device_owner: port.owner, 'binding:vnic_type': 'normal', tags: port.tags },
    ...{ 'binding:host_id': port.host, 'binding:vif_type': isBound ? 'ovs' : 'unbound' },
    ...{
      fixed_ips: [{ subnet_id: port.network.subnet, ip_address: port.address }],
      security_groups: port.securityGroups,
    },
    ...{
      created_at: toSecond(port.createdAt),
      updated_at: toSecond(port.createdAt),
      port_security_enabled: true,
    },
  } as { id: string };
}

export function floatingView(cloud: Cloud, one: FloatingIp): { id: string } {
  const port = one.port === null ? undefined : cloud.ports.get(one.port);
  return {
    ...{
      id: one.id,
      floating_ip_address: one.address,
      floating_network_id: one.network.id,
      port_id: one.port,
    },
    ...{
      fixed_ip_address: port?.address ?? null,
      router_id: port && 'router',
      status: port ? 'ACTIVE' : 'DOWN',
    },
    ...{ project_id: one.project, tenant_id: one.project, description: one.description, tags: one.tags },
    created_at: toSecond(one.createdAt),
  } as { id: string };
}

export function networkView({ id, name, isExternal, subnet }: Network): { id: string } {
  return {
    ...{
      id,
      name,
      status: 'ACTIVE',
      admin_state_up: true,
      shared: !isExternal,
      'router:external': isExternal,
    },
    ...{ subnets: [subnet], availability_zones: ['nova'], tags: [], mtu: 1450 },
  } as { id: string };
}

export function subnetView({ id, subnet, prefix }: Network): { id: string } {
  return {
    ...{
      id: subnet,
      name: '',
      network_id: id,
      ip_version: 4,
      cidr: `${prefix}.0/24`,
      gateway_ip: `${prefix}.1`,
    },
    ...{ enable_dhcp: true, allocation_pools: [{ start: `${prefix}.10`, end: `${prefix}.209` }], tags: [] },
  } as { id: string };
}

export function groupView({ id, name, project, description, tags, rules }: SecurityGroup): { id: string } {
  return {
    ...{ id, name, project_id: project, tenant_id: project, description, tags, stateful: true },
    security_group_rules: rules.map((rule) => ({ ...rule, security_group_id: id })),
  } as { id: string };
}
