import type { LookupAddress } from 'node:dns';
import * as dns from 'node:dns';
import type { LookupFunction } from 'node:net';

/** Resolves a name to all its addresses, as `dns.lookup` does. */
export type ResolveAll = (
  hostname: string,
  options: dns.LookupOptions & { all: true },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** A host that is a forbidden address, or resolves only to forbidden addresses. */
export class ForbiddenAddress extends Error {
  override readonly name = 'ForbiddenAddress';

  constructor(host: string, verb: 'is' | 'resolves to' = 'is') {
    super(`${host} ${verb} a private or reserved address, which is not allowed`);
  }
}

/**
 * Makes a DNS lookup that drops forbidden addresses. It filters the very addresses that are connected to, so a name that
 * resolves differently a moment later (DNS rebinding) gains nothing.
 */
export function allowedLookup(
  isForbidden: (address: string) => boolean,
  { resolve = dns.lookup, verb }: { resolve?: ResolveAll | undefined; verb?: 'is' | 'resolves to' } = {},
): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, '', 0);
      const allowed = addresses.filter(({ address }) => !isForbidden(address));
      const [first] = allowed;
      if (first === undefined) return callback(new ForbiddenAddress(hostname, verb), '', 0);
      if (options.all === true) return callback(null, allowed);
      return callback(null, first.address, first.family);
    });
  };
}
