import * as dns from 'node:dns';
import type { LookupFunction } from 'node:net';

/**
 * Resolves a name for a connection that is being made, and leaves out the forbidden addresses. The check is of the very
 * addresses that are connected to, so a name that resolves differently a moment later gains nothing.
 */
export function allowedLookup(isForbidden: (address: string) => boolean): LookupFunction {
  return (hostname, options, callback) => {
    dns.lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, '', 0);
      const allowed = addresses.filter(({ address }) => !isForbidden(address));
      const [first] = allowed;
      if (first === undefined) return callback(new ForbiddenAddress(hostname), '', 0);
      if (options.all === true) return callback(null, allowed);
      return callback(null, first.address, first.family);
    });
  };
}

/** A host that is, or leads to, none but forbidden addresses. */
export class ForbiddenAddress extends Error {
  override readonly name = 'ForbiddenAddress';

  constructor(host: string) {
    super(`${host} is a private or reserved address, and these are not allowed`);
  }
}
