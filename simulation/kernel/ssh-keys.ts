import type { Chance } from './chance.ts';

/** An ed25519 public key as one authorized_keys line. It has no private key. */
export function drawSshKey(chance: Chance, comment: string): string {
  const field = (bytes: Buffer): Buffer => {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(bytes.length);
    return Buffer.concat([length, bytes]);
  };
  const blob = Buffer.concat([field(Buffer.from('ssh-ed25519')), field(chance.bytes(32))]);
  return `ssh-ed25519 ${blob.toString('base64')} ${comment}`;
}
