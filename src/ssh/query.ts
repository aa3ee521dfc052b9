import { createHash } from 'node:crypto';
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
