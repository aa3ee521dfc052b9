/** A parsed OpenSSH public key: one key, no options. */
export interface SshPublicKey {
  type: SshKeyType;
  /** The key blob as in RFC 4253 §6.6, base64. */
  base64: string;
  comment: string;
}

const MIN_RSA_BITS = 2048;
const MAX_RSA_BITS = 16_384;
const MAX_LINE_LENGTH = 8192;

const curves = { 'ecdsa-sha2-nistp256': ['nistp256', 65], 'ecdsa-sha2-nistp384': ['nistp384', 97], 'ecdsa-sha2-nistp521': ['nistp521', 133] } as const;

/** For each key type, what its blob holds after the type; returns what is wrong, or undefined. */
const blobChecks = {
  'ssh-ed25519': (blob) => expectLength(blob.next(), 32),
  'ecdsa-sha2-nistp256': (blob) => checkCurve(blob, 'ecdsa-sha2-nistp256'),
  'ecdsa-sha2-nistp384': (blob) => checkCurve(blob, 'ecdsa-sha2-nistp384'),
  'ecdsa-sha2-nistp521': (blob) => checkCurve(blob, 'ecdsa-sha2-nistp521'),
  'ssh-rsa': (blob) => {
    blob.next();
    const bits = bitLength(blob.next());
    return bits >= MIN_RSA_BITS && bits <= MAX_RSA_BITS ? undefined : `expected an RSA key of ${MIN_RSA_BITS} to ${MAX_RSA_BITS} bits, got ${bits}`;
  },
  'sk-ssh-ed25519@openssh.com': (blob) => expectLength(blob.next(), 32) ?? expectApplication(blob),
  'sk-ecdsa-sha2-nistp256@openssh.com': (blob) => checkCurve(blob, 'ecdsa-sha2-nistp256') ?? expectApplication(blob),
} as const satisfies Record<string, (blob: BlobReader) => string | undefined>;

export type SshKeyType = keyof typeof blobChecks;
export const sshKeyTypes = Object.keys(blobChecks) as SshKeyType[];

/**
 * Reads one raw OpenSSH public key (O: CreateInstanceRequest, ssh_keys). Refuses options, several
 * keys, control characters, a type that differs from the one in the blob, and private keys. What is
 * wrong is told without a character of the text, which may be a secret.
 */
export function parseSshPublicKey(text: string): { key: SshPublicKey } | { problem: string } {
  const line = text.trim();
  if (line === '') return { problem: 'expected an OpenSSH public key, got an empty string' };
  if (line.includes('PRIVATE KEY'))
    return { problem: 'this is a private key: send the public one (the .pub file), and replace this key, since it has left its owner' };
  if (line.length > MAX_LINE_LENGTH) return { problem: `expected at most ${MAX_LINE_LENGTH} characters` };
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it refuses
  if (/[\u0000-\u0008\u000a-\u001f\u007f\u0085\u2028\u2029]/.test(line) || !line.isWellFormed())
    return { problem: 'expected one key on one line, without line breaks or control characters' };

  const [type = '', base64 = '', ...comment] = line.split(/[ \t]+/);
  if (!isSshKeyType(type)) return { problem: unknownType(type, line) };
  const problem = checkBlob(type, base64);
  return problem === undefined ? { key: { type, base64, comment: comment.join(' ') } } : { problem };
}

/** The key as one authorized_keys line, rebuilt from its parts. */
export function toAuthorizedKeysLine(key: SshPublicKey): string {
  return key.comment === '' ? `${key.type} ${key.base64}` : `${key.type} ${key.base64} ${key.comment}`;
}

function isSshKeyType(type: string): type is SshKeyType {
  return Object.hasOwn(blobChecks, type);
}

function unknownType(type: string, line: string): string {
  const known = sshKeyTypes.join(', ');
  if (type === 'ssh-dss') return `DSA keys are not accepted; expected one of: ${known}`;
  if (type.includes('-cert-v')) return `certificates are not accepted; expected a key of one of: ${known}`;
  if (sshKeyTypes.some((known) => line.includes(` ${known} `)))
    return 'options before the key are not accepted; expected the line to begin with the key type';
  return `expected the line to begin with one of: ${known}`;
}

function checkBlob(type: SshKeyType, base64: string): string | undefined {
  if (base64 === '') return 'expected base64 key data after the key type';
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(base64)) return 'expected base64 key data after the key type';
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.toString('base64') !== base64) return 'the base64 key data is truncated or not canonical';
  try {
    const blob = new BlobReader(bytes);
    const inner = blob.next().toString('latin1');
    if (inner !== type) return `the key says ${type}, its data is of another type`;
    const problem = blobChecks[type](blob);
    if (problem !== undefined) return problem;
    return blob.isAtEnd ? undefined : 'the key data has bytes after its end';
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

function expectLength(field: Buffer, length: number): string | undefined {
  return field.length === length ? undefined : 'the key data is truncated';
}

function expectApplication(blob: BlobReader): string | undefined {
  return blob.next().length > 0 ? undefined : 'expected an application string in a security key';
}

function checkCurve(blob: BlobReader, type: keyof typeof curves): string | undefined {
  const [curve, pointLength] = curves[type];
  if (blob.next().toString('latin1') !== curve) return `expected the curve ${curve}`;
  const point = blob.next();
  return point.length === pointLength && point[0] === 4 ? undefined : 'expected an uncompressed curve point';
}

function bitLength(integer: Buffer): number {
  const significant = integer.subarray(integer.findIndex((byte) => byte !== 0));
  const [first = 0] = significant;
  return first === 0 ? 0 : significant.length * 8 - Math.clz32(first) + 24;
}
