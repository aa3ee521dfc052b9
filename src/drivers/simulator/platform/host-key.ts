import { createHash } from 'node:crypto';
import ssh2 from 'ssh2';

const ED25519_BLOB_BYTES = 51;

/** A machine's SSH identity. */
export interface HostKey {
  /** PEM, OpenSSH format. */
  privateKey: string;
  /** `SHA256:…`, as `ssh-keygen -l` prints it. */
  fingerprint: string;
}

/**
 * Makes an Ed25519 key. ssh2 1.17 drops leading zero bytes of the public key, so one in 256 of its keys is malformed;
 * those are discarded.
 */
export function generateHostKey(): HostKey {
  for (;;) {
    const pair = ssh2.utils.generateKeyPairSync('ed25519');
    const blob = Buffer.from(pair.public.split(' ')[1] ?? '', 'base64');
    if (blob.length !== ED25519_BLOB_BYTES) continue;
    const digest = createHash('sha256').update(blob).digest('base64').replaceAll('=', '');
    return { privateKey: pair.private, fingerprint: `SHA256:${digest}` };
  }
}
