import { isIP } from 'node:net';

/** The origin of a request. */
export interface Client {
  /** As logged. */
  address: string;
  /** The network that is counted: the address, or the /64 of an IPv6 address, which belongs to one customer. */
  network: string;
}

/**
 * Determines the client of a request. Each of `trustedProxies` proxies appends the address that it sees to
 * X-Forwarded-For. The address that the outermost proxy saw is used; earlier ones may be forged.
 */
export function clientOf(
  socketAddress: string | undefined,
  forwardedFor: string | undefined,
  trustedProxies: number,
): Client {
  const direct = toClient(socketAddress ?? '') ?? UNKNOWN;
  if (trustedProxies === 0 || forwardedFor === undefined) return direct;
  const addresses = forwardedFor.split(',').map((text) => text.trim());
  return toClient(addresses.at(-Math.min(trustedProxies, addresses.length)) ?? '') ?? direct;
}

const UNKNOWN: Client = { address: 'unknown', network: 'unknown' };

/** Parses an IPv4 address, also IPv4-mapped, or an IPv6 address. Undefined if it is neither. */
function toClient(text: string): Client | undefined {
  const address = withoutPort(text);
  const family = isIP(address);
  if (family === 4) return { address, network: address };
  if (family !== 6) return undefined;
  const network = networkOf(address);
  return { address: network.includes('/') ? address.replace(/%.*$/, '').toLowerCase() : network, network };
}

/** Some proxies write `203.0.113.7:4711` and `[2001:db8::1]:4711`. */
function withoutPort(text: string): string {
  const bracketed = /^\[([^\]]+)\](?::\d+)?$/.exec(text)?.[1];
  if (bracketed !== undefined) return bracketed;
  return /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text;
}

function networkOf(address: string): string {
  const groups = groupsOf(address.replace(/%.*$/, ''));
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  if (isMapped) {
    const [high = 0, low = 0] = groups.slice(6);
    return [high >> 8, high & 0xff, low >> 8, low & 0xff].join('.');
  }
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`;
}

/** The eight groups of a valid IPv6 address. `::` may stand for some, and the last two may be an IPv4 address. */
export function groupsOf(address: string): number[] {
  const [head = '', tail] = address.split('::');
  const before = toGroups(head);
  const after = toGroups(tail ?? '');
  const zeros = tail === undefined ? 0 : 8 - before.length - after.length;
  return [...before, ...new Array<number>(zeros).fill(0), ...after];
}

function toGroups(text: string): number[] {
  if (text === '') return [];
  return text.split(':').flatMap((part) => {
    if (!part.includes('.')) return [Number.parseInt(part, 16)];
    const [a = 0, b = 0, c = 0, d = 0] = part.split('.').map(Number);
    return [a * 256 + b, c * 256 + d];
  });
}

/** Counts a header. node:http keeps the first of two and silently drops the other. */
export function countHeader(rawHeaders: readonly string[], name: string): number {
  let count = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const raw = rawHeaders[index];
    if (raw?.length === name.length && raw.toLowerCase() === name) count++;
  }
  return count;
}
