import ssh2 from 'ssh2';
import type { KeyPair, SshClient } from './ssh-client.ts';
import { Ssh2Login } from './ssh2-login.ts';

const ED25519_BLOB_BYTES = 51;

/** An SSH client on the `ssh2` package. */
export function ssh2Client(): SshClient {
  return {
    async login(login) {
      const startedAt = performance.now();
      const outcome = await new Ssh2Login(login).run();
      return { ...outcome, totalMs: performance.now() - startedAt };
    },
    newKeyPair,
  };
}

/**
 * ssh2 1.17 drops leading zero bytes of the public key, which makes one key in 256 malformed. Those are generated
 * again.
 */
function newKeyPair(comment: string): KeyPair {
  for (;;) {
    const pair = ssh2.utils.generateKeyPairSync('ed25519', { comment });
    const blob = Buffer.from(pair.public.split(' ')[1] ?? '', 'base64');
    if (blob.length === ED25519_BLOB_BYTES) return { publicKey: pair.public, privateKey: pair.private };
  }
}
