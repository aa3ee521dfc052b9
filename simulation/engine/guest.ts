import { createHash } from 'node:crypto';
import type { Guest } from './engine.ts';

/**
 * What a guest finds at its first boot in the cloud-init data that it was given. Without a host key there it makes one:
 * `madeOf` is what is its own.
 */
export function guestOf(text: string, madeOf = ''): Guest {
  const keys = [...text.matchAll(/"(ssh-ed25519 [A-Za-z0-9+/=]+[^"]*)"/g)].map(([, key = '']) => key);
  const own = /"ed25519_public": *"(ssh-ed25519 [^"]+)"/.exec(text)?.[1];
  const blob = Buffer.from(own?.split(' ')[1] ?? madeOf, 'base64');
  const digest = createHash('sha256').update(blob).digest('base64').replaceAll('=', '');
  return { hostKey: `SHA256:${digest}`, keys: keys.filter((key) => key !== own) };
}
