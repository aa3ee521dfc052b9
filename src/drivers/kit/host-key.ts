import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto';

/** A machine's SSH identity, made before the machine. */
export interface HostKey {
  /** PEM, OpenSSH format. */
  privateKey: string;
  /** As in a `.pub` file. */
  publicKey: string;
  /** `SHA256:…`, as `ssh-keygen -l` prints it. */
  fingerprint: string;
}

const TYPE = 'ssh-ed25519';

export function generateHostKey(): HostKey {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const point = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url');
  const seed = Buffer.from(privateKey.export({ format: 'jwk' }).d ?? '', 'base64url');
  const blob = Buffer.concat([text(TYPE), text(point)]);
  const digest = createHash('sha256').update(blob).digest('base64').replaceAll('=', '');
  return {
    privateKey: toPem(blob, point, seed),
    publicKey: `${TYPE} ${blob.toString('base64')}`,
    fingerprint: `SHA256:${digest}`,
  };
}

/** Encodes as in OpenSSH's PROTOCOL.key, unencrypted. */
function toPem(blob: Buffer, point: Buffer, seed: Buffer): string {
  const check = randomBytes(4);
  const secret = Buffer.concat([check, check, blob, text(Buffer.concat([seed, point])), text('')]);
  const padding = Buffer.from(Array.from({ length: (8 - (secret.length % 8)) % 8 }, (_, index) => index + 1));
  const body = Buffer.concat([
    Buffer.from('openssh-key-v1\0'),
    ...[text('none'), text('none'), text(''), number(1), text(blob), text(Buffer.concat([secret, padding]))],
  ]);
  const lines = body.toString('base64').match(/.{1,70}/g) ?? [];
  return ['-----BEGIN OPENSSH PRIVATE KEY-----', ...lines, '-----END OPENSSH PRIVATE KEY-----', ''].join(
    '\n',
  );
}

function text(value: string | Buffer): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([number(bytes.length), bytes]);
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
