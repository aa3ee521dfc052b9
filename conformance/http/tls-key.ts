import { createHash } from 'node:crypto';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

const known = new WeakMap<Socket, string>();

/**
 * SHA-256 of the public key that the server of this connection showed (SubjectPublicKeyInfo, DER), hex, as
 * `openssl pkey -pubin -outform der | sha256sum` prints it. Undefined without TLS.
 */
export function tlsKeyOf(socket: Socket): string | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  const key = known.get(socket) ?? readKey(socket);
  if (key !== undefined) known.set(socket, key);
  return key;
}

function readKey(socket: TLSSocket): string | undefined {
  const spki = socket.getPeerX509Certificate()?.publicKey.export({ format: 'der', type: 'spki' });
  return spki && createHash('sha256').update(spki).digest('hex');
}
