import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { parsePublicKey } from './parse-public-key.ts';

const folder = new URL('../../../fixtures/ssh-keys/valid/', import.meta.url).pathname;
const files = readdirSync(folder);

it('has a key of every type to compare [fingerprint-every-type]', () => {
  const types = new Set(files.map((file) => readFileSync(folder + file, 'utf8').split(' ')[0]));
  expect([...types].sort()).toEqual([
    'ecdsa-sha2-nistp256',
    'ecdsa-sha2-nistp384',
    'ecdsa-sha2-nistp521',
    'sk-ecdsa-sha2-nistp256@openssh.com',
    'sk-ssh-ed25519@openssh.com',
    'ssh-ed25519',
    'ssh-rsa',
  ]);
});

it.each(files)('prints the fingerprint of %s as ssh-keygen does [fingerprint-like-ssh-keygen]', (file) => {
  const printed = execFileSync('ssh-keygen', ['-l', '-f', folder + file], { encoding: 'utf8' });
  const { fingerprint } = parsePublicKey('publicKey', readFileSync(folder + file, 'utf8'));
  expect(fingerprint).toBe(printed.split(' ')[1]);
  expect(fingerprint).toMatch(/^SHA256:[A-Za-z0-9+/]{43}$/);
});
