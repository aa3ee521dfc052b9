import { BlockList, isIP } from 'node:net';

/** Addresses that are not on the public internet, or that can map to a private network. */
const FORBIDDEN_IPV4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15'],
  ...['198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4'],
];

/** Addresses that embed an IPv4 address are checked by that: see {@link isForbiddenAddress}. */
const FORBIDDEN_IPV6 = [
  ...['64:ff9b:1::/48', '100::/64', '2001::/23', '2001:db8::/32', '2002::/16'],
  ...['3fff::/20', '5f00::/16', 'fc00::/7', 'fe80::/10', 'fec0::/10', 'ff00::/8'],
];

/** Prefixes whose last 32 bits are an IPv4 address: mapped, translated (also by NAT64) and compatible ones. */
const WITH_IPV4 = ['::ffff:0:0/96', '::ffff:0:0:0/96', '64:ff9b::/96', '::/96'];

const forbidden = new BlockList();
for (const range of FORBIDDEN_IPV4) addRange(forbidden, range, 'ipv4');
for (const range of FORBIDDEN_IPV6) addRange(forbidden, range, 'ipv6');
const withIpv4 = new BlockList();
for (const range of WITH_IPV4) addRange(withIpv4, range, 'ipv6');

function addRange(list: BlockList, range: string, family: 'ipv4' | 'ipv6'): void {
  const [network = '', length] = range.split('/');
  list.addSubnet(network, Number(length), family);
}

/** Whether an IP address is private, loopback, link-local, shared, multicast, a cloud's metadata or reserved. */
export function isForbiddenAddress(address: string): boolean {
  const [bare = ''] = address.split('%');
  const family = isIP(bare);
  if (family === 0) return true;
  if (family === 4) return forbidden.check(bare, 'ipv4');
  if (withIpv4.check(bare, 'ipv6')) return forbidden.check(lastBitsAsIpv4(bare), 'ipv4');
  return forbidden.check(bare, 'ipv6');
}

function lastBitsAsIpv4(address: string): string {
  // A URL normalises an address to hexadecimal groups.
  const groups = new URL(`http://[${address}]`).hostname.slice(1, -1).split(':');
  const [high = 0, low = 0] = groups.slice(-2).map((group) => Number.parseInt(group || '0', 16));
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
}
