import { createHash } from 'node:crypto';
import * as dns from 'node:dns';
import type { LookupFunction } from 'node:net';
import ssh2, { type ParsedKey } from 'ssh2';
import type { SshPublicKey } from '../contract/ssh-key.ts';

/** Any key that ssh2 can parse. Only its brand is used, see `toQueryKey`. */
const BRANDED_LINE = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea';

/**
 * Converts a key so that ssh2's client can offer it. ssh2 cannot parse security keys (`sk-…`) and accepts only
 * objects with its private brand, so the result inherits from a key that ssh2 parsed. RSA is offered as rsa-sha2-256:
 * current OpenSSH refuses ssh-rsa, which signs SHA-1.
 */
export function toQueryKey(key: SshPublicKey): ParsedKey {
  const branded = ssh2.utils.parseKey(BRANDED_LINE);
  if (branded instanceof Error) throw branded;
  const blob = Buffer.from(key.base64, 'base64');
  return Object.create(branded, {
    type: { value: key.type === 'ssh-rsa' ? 'rsa-sha2-256' : key.type },
    getPublicSSH: { value: () => blob },
  }) as ParsedKey;
}

/** The `SHA256:…` fingerprint of a key blob, as `ssh-keygen -l` prints it. */
export function fingerprintOf(blob: Buffer): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replaceAll('=', '')}`;
}

/**
 * Makes a DNS lookup that drops forbidden addresses. It filters the very addresses that are connected to, so DNS
 * rebinding does not bypass the check.
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

/** A host that is a forbidden address, or resolves only to forbidden addresses. */
export class ForbiddenAddress extends Error {
  override readonly name = 'ForbiddenAddress';

  constructor(host: string) {
    super(`${host} is a private or reserved address, which is not allowed`);
  }
}
