import { createHash } from 'node:crypto';
import ssh2, { type ParsedKey } from 'ssh2';
import type { SshPublicKey } from '../contract/ssh-key.ts';

/** Any key that ssh2 can parse: only its brand is borrowed, see `toQueryKey`. */
const BRANDED_LINE = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAINdamAGCsQq31Uv+08lkBzoO4XLz2qYjJa8CGmj3B1Ea';

/**
 * The key as ssh2's client can offer it. ssh2 cannot parse security keys (`sk-…`), but to offer a key
 * it needs no more than the algorithm's name and the blob. It takes only objects with its private
 * brand, so this one inherits it from a key that ssh2 parsed. RSA is offered as rsa-sha2-256: a
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

/** `SHA256:…` of a key blob, as `ssh-keygen -l` prints it. */
export function fingerprintOf(blob: Buffer): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replaceAll('=', '')}`;
}
