import { scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';
import type { Random } from '../../ports/clock.ts';

const derive = promisify<string, Buffer, number, { N: number; r: number; p: number; maxmem: number }, Buffer>(
  scrypt,
);
const COST = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 1024 * 1024 };
const HASH_BYTES = 32;

/** Returns `scrypt$<salt>$<hash>`, both base64. */
export async function hashPassword(password: string, random: Random): Promise<string> {
  const salt = random.bytes(16);
  const hash = await derive(password, salt, HASH_BYTES, COST);
  return `scrypt$${salt.toString('base64')}$${hash.toString('base64')}`;
}

/** Takes as long for an account without a password (`null`) as for a wrong one. */
export async function isPassword(password: string, stored: string | null): Promise<boolean> {
  const [, salt = '', hash = ''] = (stored ?? 'scrypt$AAAAAAAAAAAAAAAAAAAAAA==$').split('$');
  const actual = await derive(password, Buffer.from(salt, 'base64'), HASH_BYTES, COST);
  const expected = Buffer.from(hash, 'base64');
  return expected.length === HASH_BYTES && timingSafeEqual(actual, expected);
}
