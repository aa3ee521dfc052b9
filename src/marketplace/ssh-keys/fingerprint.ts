import { createHash } from 'node:crypto';
import type { SshPublicKey } from '../../contract/ssh-key.ts';

/** `SHA256:…`, as `ssh-keygen -l` prints it: of the key's data, in base64 without padding. */
export function fingerprintOf({ base64 }: SshPublicKey): string {
  const digest = createHash('sha256').update(Buffer.from(base64, 'base64')).digest('base64');
  return `SHA256:${digest.replace(/=+$/, '')}`;
}
