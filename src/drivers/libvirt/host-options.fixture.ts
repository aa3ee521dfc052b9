import type { HostOptions } from './options.ts';

export function someHostOptions(overrides: Partial<HostOptions> = {}): HostOptions {
  return {
    name: 'kvm-1',
    uri: 'qemu:///system',
    datacenter: 'fra',
    group: 'default',
    public_ip: '192.0.2.1',
    pool: 'berth',
    network: { mode: 'bridged', bridge: 'br0', address_from: 'arp' },
    reserve: { vcpus: 1, memory_gb: 2, disk_gb: 10 },
    overcommit: { vcpus: 2, disk: 1 },
    state_dir: '/var/lib/berth',
    ...overrides,
  };
}
