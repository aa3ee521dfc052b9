import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';

/** Private, loopback, link-local, shared and other addresses that are not on the public internet. */
const privateAddresses = new BlockList();
for (const range of [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '224.0.0.0/4',
  '240.0.0.0/4',
]) {
  const [network = '', length] = range.split('/');
  privateAddresses.addSubnet(network, Number(length), 'ipv4');
}

/** IPv6 addresses that are routed on the public internet; `carriers` embed another address. */
const publicIpv6 = new BlockList();
publicIpv6.addSubnet('2000::', 3, 'ipv6');
const carriers = new BlockList();
carriers.addSubnet('2001::', 32, 'ipv6');
carriers.addSubnet('2002::', 16, 'ipv6');

/** Whether an IP address is not on the public internet. */
export function isPrivateAddress(address: string): boolean {
  const [bare = ''] = address.split('%');
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(bare)?.[1];
  if (isIP(mapped ?? bare) === 4) return privateAddresses.check(mapped ?? bare);
  return !publicIpv6.check(bare, 'ipv6') || carriers.check(bare, 'ipv6');
}

/** Whether a base URL names a private address or `localhost`. Then its machines may be private too. */
export function isPrivateBaseUrl(baseUrl: string): boolean {
  const host = new URL(baseUrl).hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  return host === 'localhost' || host.endsWith('.localhost') || (isIP(host) !== 0 && isPrivateAddress(host));
}

/** A host name that resolves only to private addresses. */
export class PrivateAddress extends Error {
  override readonly name = 'PrivateAddress';
}

/** A DNS lookup for a connection that drops private addresses, so that only checked addresses are connected to. */
export const publicLookup: LookupFunction = (hostname, options, callback) => {
  const all: LookupOptions & { all: true } = { ...options, all: true };
  lookup(hostname, all, (error, addresses: LookupAddress[]) => {
    if (error !== null) return callback(error, '', 0);
    const allowed = addresses.filter(({ address }) => !isPrivateAddress(address));
    const [first] = allowed;
    if (first === undefined) return callback(new PrivateAddress(hostname), '', 0);
    return options.all === true ? callback(null, allowed) : callback(null, first.address, first.family);
  });
};
