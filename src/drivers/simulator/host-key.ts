import { createHash } from 'node:crypto';
import ssh2 from 'ssh2';

/** A machine's SSH identity. */
export interface HostKey {
  /** OpenSSH PEM. */
  privateKey: string;
  /** `SHA256:…` as `ssh-keygen -l` prints it. */
  fingerprint: string;
}

export function generateHostKey(): HostKey {
  const pair = ssh2.utils.generateKeyPairSync('ed25519');
  const blob = Buffer.from(pair.public.split(' ')[1] ?? '', 'base64');
  const digest = createHash('sha256').update(blob).digest('base64').replaceAll('=', '');
  return { privateKey: pair.private, fingerprint: `SHA256:${digest}` };
}
