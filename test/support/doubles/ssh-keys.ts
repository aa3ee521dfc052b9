import { generateKeyPairSync } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';

/** A fresh ed25519 key as one authorized_keys line. */
export function newPublicKey(comment = 'test'): string {
  const { x = '' } = generateKeyPairSync('ed25519').publicKey.export({ format: 'jwk' });
  const field = (bytes: Buffer): Buffer =>
    Buffer.concat([Buffer.from(Uint32Array.of(bytes.length).buffer).reverse(), bytes]);
  const blob = Buffer.concat([field(Buffer.from('ssh-ed25519')), field(Buffer.from(x, 'base64url'))]);
  return `ssh-ed25519 ${blob.toString('base64')} ${comment}`;
}

const validKeys = new URL('../../../fixtures/ssh-keys/valid/', import.meta.url);

/** Every kind of key that the contract accepts, from the fixtures. */
export function publicKeyFixtures(): string[] {
  return readdirSync(validKeys).map((file) => readFileSync(new URL(file, validKeys), 'utf8'));
}
