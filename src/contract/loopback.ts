import { BlockList, isIP } from 'node:net';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/**
 * Whether a host is reachable only from this machine: an address of the loopback network, or `localhost`. `host` is the
 * value of a flag, or the `hostname` of a `URL`, which normalises IP addresses.
 */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  const family = isIP(bare);
  if (family === 0) return /^localhost\.?$/i.test(bare);
  const [address = ''] = bare.split('%');
  return loopback.check(address, family === 6 ? 'ipv6' : 'ipv4');
}
