import ssh2 from 'ssh2';
import type { KeyPair, KeyType, SshClient } from './ssh-client.ts';
import { Ssh2Login } from './ssh2-login.ts';

const ED25519_BLOB_BYTES = 51;
const BITS = { ecdsa: 256, rsa: 2048 };

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

function newKeyPair(comment: string, type: KeyType = 'ed25519'): KeyPair {
  if (type === 'ed25519') return newEd25519Pair(comment);
  const pair = ssh2.utils.generateKeyPairSync(type, { comment, bits: BITS[type] });
  return { publicKey: pair.public, privateKey: pair.private };
}

/**
 * ssh2 1.17 drops leading zero bytes of the public key, which makes one key in 256 malformed. Those are generated
 * again.
 */
function newEd25519Pair(comment: string): KeyPair {
  for (;;) {
    const pair = ssh2.utils.generateKeyPairSync('ed25519', { comment });
    const blob = Buffer.from(pair.public.split(' ')[1] ?? '', 'base64');
    if (blob.length === ED25519_BLOB_BYTES) return { publicKey: pair.public, privateKey: pair.private };
  }
}
