import { createPublicKey } from 'node:crypto';

const MIN_RSA_BITS = 2048;
const MAX_RSA_BITS = 16_384;

/** For each curve its name in JWK and the length of a coordinate in bytes. */
const curves = {
  nistp256: { jwk: 'P-256', coordinateBytes: 32 },
  nistp384: { jwk: 'P-384', coordinateBytes: 48 },
  nistp521: { jwk: 'P-521', coordinateBytes: 66 },
} as const;

/** Checks the part of a blob after the key type. Each returns the problem, or undefined. */
const blobChecks = {
  'ssh-ed25519': checkEd25519,
  'ecdsa-sha2-nistp256': (blob) => checkEcdsa(blob, 'nistp256'),
  'ecdsa-sha2-nistp384': (blob) => checkEcdsa(blob, 'nistp384'),
  'ecdsa-sha2-nistp521': (blob) => checkEcdsa(blob, 'nistp521'),
  'ssh-rsa': checkRsa,
  'sk-ssh-ed25519@openssh.com': (blob) => checkEd25519(blob) ?? checkApplication(blob),
  'sk-ecdsa-sha2-nistp256@openssh.com': (blob) => checkEcdsa(blob, 'nistp256') ?? checkApplication(blob),
} as const satisfies Record<string, (blob: BlobReader) => string | undefined>;

export type SshKeyType = keyof typeof blobChecks;
export const sshKeyTypes = Object.keys(blobChecks) as SshKeyType[];

export function isSshKeyType(type: string): type is SshKeyType {
  return Object.hasOwn(blobChecks, type);
}

/**
 * Returns the problem with the blob (RFC 4253 §6.6) of a key of `type`, or undefined. Refuses keys that sshd would
 * refuse to load, because they could never log in.
 */
export function findBlobProblem(type: SshKeyType, bytes: Buffer): string | undefined {
  try {
    const blob = new BlobReader(bytes);
    if (blob.next().toString('latin1') !== type)
      return `the key type is ${type}, but its data has another type`;
    return blobChecks[type](blob) ?? (blob.isAtEnd ? undefined : 'the key data has bytes after its end');
  } catch (error) {
    if (error instanceof RangeError) return 'the key data is truncated';
    throw error;
  }
}

/** Reads the length-prefixed strings of RFC 4251 §5. @throws {RangeError} past the end. */
class BlobReader {
  readonly #bytes: Buffer;
  #offset = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  next(): Buffer {
    const start = this.#offset + 4;
    const end = start + this.#bytes.readUInt32BE(this.#offset);
    if (end > this.#bytes.length) throw new RangeError('string runs past the end');
    this.#offset = end;
    return this.#bytes.subarray(start, end);
  }

  get isAtEnd(): boolean {
    return this.#offset === this.#bytes.length;
  }
}

function checkEd25519(blob: BlobReader): string | undefined {
  const { length } = blob.next();
  return length === 32 ? undefined : `expected an Ed25519 key of 32 bytes, got ${length}`;
}

function checkApplication(blob: BlobReader): string | undefined {
  return /^[\x20-\x7e]+$/.test(blob.next().toString('latin1'))
    ? undefined
    : 'expected an application such as "ssh:" in a security key';
}

function checkEcdsa(blob: BlobReader, curve: keyof typeof curves): string | undefined {
  if (blob.next().toString('latin1') !== curve) return `expected the curve ${curve}`;
  const point = blob.next();
  const { jwk, coordinateBytes } = curves[curve];
  if (point.length !== 1 + 2 * coordinateBytes || point[0] !== 4)
    return 'expected an uncompressed curve point';
  const x = point.subarray(1, 1 + coordinateBytes).toString('base64url');
  const y = point.subarray(1 + coordinateBytes).toString('base64url');
  try {
    createPublicKey({ format: 'jwk', key: { kty: 'EC', crv: jwk, x, y } });
    return undefined;
  } catch {
    return `expected a point on the curve ${curve}`;
  }
}

function checkRsa(blob: BlobReader): string | undefined {
  const exponent = blob.next();
  const modulus = blob.next();
  if (!isCanonicalPositive(exponent) || !isCanonicalPositive(modulus))
    return 'expected positive numbers in an RSA key';
  const bits = bitLength(modulus);
  if (bits < MIN_RSA_BITS || bits > MAX_RSA_BITS)
    return `expected an RSA key of ${MIN_RSA_BITS} to ${MAX_RSA_BITS} bits, got ${bits}`;
  if (!isOdd(modulus)) return 'expected an odd RSA modulus';
  return isOdd(exponent) && bitLength(exponent) >= 2
    ? undefined
    : 'expected an odd RSA exponent of at least 3';
}

/** Whether the bytes are a positive mpint of RFC 4251 §5 in its only form: no sign bit, no needless leading zero. */
function isCanonicalPositive(integer: Buffer): boolean {
  const [first, second = 0] = integer;
  if (first === undefined || first >= 0x80) return false;
  return first !== 0 || second >= 0x80;
}

function isOdd(integer: Buffer): boolean {
  return ((integer.at(-1) ?? 0) & 1) === 1;
}

function bitLength(integer: Buffer): number {
  const significant = integer[0] === 0 ? integer.subarray(1) : integer;
  return significant.length * 8 - Math.clz32(significant[0] ?? 0) + 24;
}
