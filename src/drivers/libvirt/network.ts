import { type DefinedDomain, NETWORK_FILTER } from './domain-xml.ts';
import type { NatMark } from './machine-mark.ts';
import type { HostOptions, NatOptions } from './options.ts';

const SSH = 22;

/** Whether the output of `virsh nwfilter-list` has the filter. Without it libvirt starts no machine. */
export function hasNetworkFilter(text: string): boolean {
  return new RegExp(`\\s${NETWORK_FILTER}\\s*$`, 'm').test(text);
}

/**
 * An address and ports of the host that no machine uses. Undefined if none is left. Ports map to fixed addresses, so
 * the first port claims both.
 */
export function freeNat(
  nat: NatOptions,
  taken: ReadonlySet<number>,
  ports: readonly number[],
): NatMark | undefined {
  const [first] = nat.ports;
  const each = nat.ports_per_machine;
  const guestPorts = [...new Set([SSH, ...ports])].slice(0, each);
  for (let index = 0; index < natUnits(nat); index++) {
    const hostPort = first + index * each;
    if (taken.has(hostPort)) continue;
    return { hostPort, address: addressAfter(nat.gateway, index + 1), bridge: nat.bridge, guestPorts };
  }
  return undefined;
}

/**
 * The ports in use, each with its address: by machines, by their copies, and by released machines, whose guests keep
 * their address.
 */
export const takenPorts = (domains: readonly Pick<DefinedDomain, 'mark' | 'release'>[]): Set<number> =>
  new Set(domains.flatMap(({ mark, release }) => mark?.nat?.hostPort ?? release?.hostPort ?? []));

export function natUnits({ ports: [first, last], ports_per_machine: each, prefix }: NatOptions): number {
  return Math.min(2 ** (32 - prefix) - 3, Math.floor((last - first + 1) / each));
}

function addressAfter(address: string, offset: number): string {
  const bytes = Buffer.from(address.split('.').map(Number));
  bytes.writeUInt32BE(bytes.readUInt32BE() + offset);
  return bytes.join('.');
}

/** cloud-init's network-config, version 2, as JSON: the machine's own address, or DHCP. */
export function toNetworkConfig({ network }: HostOptions, mac: string, nat: NatMark | undefined): string {
  const card = { match: { macaddress: mac } };
  const fixed =
    nat === undefined || network.mode !== 'nat'
      ? { dhcp4: true }
      : {
          dhcp4: false,
          addresses: [`${nat.address}/${network.prefix}`],
          routes: [{ to: '0.0.0.0/0', via: network.gateway }],
          nameservers: { addresses: network.nameservers ?? [network.gateway] },
        };
  return JSON.stringify({ version: 2, ethernets: { nic0: { ...card, ...fixed } } });
}
