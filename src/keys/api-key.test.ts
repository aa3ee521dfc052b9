import { crc32 } from 'node:zlib';
import { expect, it } from 'vitest';
import { systemRandom } from '../runtime/system.ts';
import { describeApiKey, digestSecret, generateApiKey, generateToken } from './api-key.ts';

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const fromBase62 = (text: string): number =>
  [...text].reduce((value, digit) => value * 62 + ALPHABET.indexOf(digit), 0);

it.each([
  ['a key', generateApiKey, /^(berth_[0-9A-Za-z]{43})_([0-9A-Za-z]{6})$/],
  ['a token', generateToken, /^(berthtoken_[0-9A-Za-z]{43})_([0-9A-Za-z]{6})$/],
])('%s ends with the CRC-32 of all before it, and is never made twice', (_, generate, form) => {
  const made = new Set(Array.from({ length: 200 }, () => generate(systemRandom)));
  expect(made.size).toBe(200);
  for (const secret of made) {
    const [, body = '', checksum = ''] = form.exec(secret) ?? [];
    expect(fromBase62(checksum)).toBe(crc32(body));
  }
});

it('a list may show ten characters of a key and the last four, and the store has its SHA-256', () => {
  const key = generateApiKey(systemRandom);
  const { prefix, lastFour } = describeApiKey(key);
  expect([prefix, lastFour]).toEqual([key.slice(0, 10), key.slice(-4)]);
  expect(digestSecret(key)).toHaveLength(32);
  expect(digestSecret('abc').toString('hex')).toBe(
    'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
  );
});
