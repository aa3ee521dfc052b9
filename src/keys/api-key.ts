import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { Random } from '../ports/clock.ts';
import { Fatal } from '../ports/errors.ts';

const SECRET_BYTES = 32;
const SECRET_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/**
 * Makes `berth_<random>_<checksum>`: 256 random bits, and a CRC-32 that lets a scanner tell a real key from a
 * lookalike. The key is shown once; only its digest is stored.
 */
export const generateApiKey = (random: Random): string => generate('berth', random);
/** Makes a bearer token in the same format. */
export const generateToken = (random: Random): string => generate('berthtoken', random);
/** Makes a key for the admin listener in the same format. */
export const generateOperatorKey = (random: Random): string => generate('berthop', random);

/** The digest that is stored and looked up. A slow hash is unnecessary: the secret has 256 bits of entropy. */
export function digestSecret(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

/** The parts of a key that a list may show. */
export function describeApiKey(key: string): { prefix: string; lastFour: string } {
  return { prefix: key.slice(0, 10), lastFour: key.slice(-4) };
}

function generate(prefix: string, random: Random): string {
  const secret = BigInt(`0x${random.bytes(SECRET_BYTES).toString('hex')}`);
  const body = `${prefix}_${base62(secret, SECRET_LENGTH)}`;
  return `${body}_${base62(BigInt(crc32(body)), CHECKSUM_LENGTH)}`;
}

function base62(value: bigint, length: number): string {
  let text = '';
  for (let rest = value; text.length < length; rest /= 62n) text = ALPHABET.charAt(Number(rest % 62n)) + text;
  return text;
}

const BEARER = /^Bearer +([A-Za-z0-9._~+/=-]{1,512})$/i;

/** The bearer token of an `Authorization` header; undefined: it has none. */
export function bearerToken(authorization: string | undefined): string | undefined {
  return authorization === undefined ? undefined : BEARER.exec(authorization)?.[1];
}

const MIN_LENGTH = 16;

/**
 * Reads a secret from the environment; undefined: the variable is unset or empty.
 *
 * @throws {Fatal} if the secret cannot be sent in a header, or is too short
 */
export function readSecret(
  env: Readonly<Record<string, string | undefined>>,
  name: string,
): string | undefined {
  const secret = env[name] || undefined;
  if (secret !== undefined && (secret.length < MIN_LENGTH || !/^[A-Za-z0-9._~+/=-]{1,512}$/.test(secret)))
    throw new Fatal(
      `${name} must be ${MIN_LENGTH} to 512 characters of A-Z a-z 0-9 . _ ~ + / = -; make one with \`openssl rand -hex 32\`.`,
    );
  return secret;
}
