import { readFileSync } from 'node:fs';

const read = (file: string): string =>
  readFileSync(new URL(`../../fixtures/tls/${file}`, import.meta.url), 'utf8');

/** In PEM. It issued the certificates that are not self-signed. */
export const authority = read('authority.crt');

/** A certificate of `fixtures/tls` and its key, in PEM. */
export function certificateOf(name: 'localhost' | 'expired' | 'other-host' | 'self-signed' | 'nameless') {
  return { cert: read(`${name}.crt`), key: read('server.key') };
}
