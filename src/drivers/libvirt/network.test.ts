import { describe, expect, it } from 'vitest';
import { freeNat } from './network.ts';
import { libvirtConfigSchema } from './options.ts';

function natOptions(network: object) {
  const host = {
    name: 'kvm-1',
    datacenter: 'fra',
    public_ip: '203.0.113.1',
    network: { mode: 'nat', ...network },
  };
  const [parsed] = libvirtConfigSchema.parse({ driver: 'libvirt', hosts: [host] }).hosts;
  if (parsed?.network.mode !== 'nat') throw new Error('no NAT');
  return parsed.network;
}

describe('addresses and ports behind NAT', () => {
  it('are the first free ones, always in the same pairs', () => {
    const nat = natOptions({ ports: [30_000, 30_015], ports_per_machine: 4 });
    expect(freeNat(nat, new Set(), [80])).toEqual({
      hostPort: 30_000,
      address: '192.168.150.2',
      bridge: 'virbr-berth',
      guestPorts: [22, 80],
    });
    expect(freeNat(nat, new Set([30_000, 30_008]), [])).toMatchObject({
      hostPort: 30_004,
      address: '192.168.150.3',
      guestPorts: [22],
    });
    expect(freeNat(nat, new Set([30_000, 30_004, 30_008, 30_012]), [])).toBeUndefined();
  });

  it('never include the address of the gateway or the last of the network', () => {
    const nat = natOptions({ gateway: '10.0.0.1', prefix: 29 });
    const taken = new Set<number>();
    const addresses: string[] = [];
    for (let given = freeNat(nat, taken, []); given !== undefined; given = freeNat(nat, taken, [])) {
      taken.add(given.hostPort);
      addresses.push(given.address);
    }
    expect(addresses).toEqual(['10.0.0.2', '10.0.0.3', '10.0.0.4', '10.0.0.5', '10.0.0.6']);
  });

  it('leave out ports that do not fit into the machine’s block', () => {
    const nat = natOptions({ ports_per_machine: 2 });
    expect(freeNat(nat, new Set(), [22, 80, 443])?.guestPorts).toEqual([22, 80]);
  });
});
