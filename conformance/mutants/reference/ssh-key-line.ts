import { createPublicKey } from 'node:crypto';

const MAX_LINE_LENGTH = 8_192;
const MIN_RSA_BITS = 2_048;

interface Curve {
  jwk: string;
  coordinateBytes: number;
}

const curves: Record<string, Curve> = {
  nistp256: { jwk: 'P-256', coordinateBytes: 32 },
  nistp384: { jwk: 'P-384', coordinateBytes: 48 },
  nistp521: { jwk: 'P-521', coordinateBytes: 66 },
};

/** For each key type, whether the fields after it (RFC 4253, 6.6) make a key. */
const types: Record<string, (fields: readonly Buffer[]) => boolean> = {
  'ssh-ed25519': (fields) => fields.length === 1 && isEd25519(fields),
  'ecdsa-sha2-nistp256': (fields) => fields.length === 2 && isEcdsa(fields, 'nistp256'),
  'ecdsa-sha2-nistp384': (fields) => fields.length === 2 && isEcdsa(fields, 'nistp384'),
  'ecdsa-sha2-nistp521': (fields) => fields.length === 2 && isEcdsa(fields, 'nistp521'),
  'ssh-rsa': (fields) => fields.length === 2 && isRsa(fields),
  'sk-ssh-ed25519@openssh.com': (fields) => fields.length === 2 && isEd25519(fields),
  'sk-ecdsa-sha2-nistp256@openssh.com': (fields) => fields.length === 3 && isEcdsa(fields, 'nistp256'),
};

/** Why `text` is not one OpenSSH public key, as in a `.pub` file. Undefined: it is valid. */
export function findKeyProblem(text: string): string | undefined {
  const line = text.replace(/\r?\n$/, '').trim();
  if (line.length > MAX_LINE_LENGTH) return 'the line is too long';
  if (/[\p{Cc}\u2028\u2029]/u.test(line.replaceAll('\t', ' '))) return 'expected one line of plain text';
  const [type = '', base64 = '', ...comment] = line.split(/[ \t]+/);
  const isKey = Object.hasOwn(types, type) ? types[type] : undefined;
  if (isKey === undefined) return 'expected an OpenSSH public key';
  const blob = Buffer.from(base64, 'base64');
  if (base64 === '' || blob.toString('base64') !== base64) return 'the key data is not base64';
  const [name, ...fields] = fieldsOf(blob) ?? [];
  if (name?.toString('latin1') !== type || !isKey(fields)) return `the data is no ${type} key`;
  return comment.some((word) => /(^|\\n)(ssh|ecdsa|sk)-\S+$/.test(word))
    ? 'expected one key only'
    : undefined;
}

/** The second word of a line, with which logins are compared. */
export const keyDataOf = (line: string): string => line.trim().split(/\s+/)[1] ?? '';

/** The length-prefixed strings of RFC 4251, or undefined if they do not end exactly at the end of the bytes. */
function fieldsOf(bytes: Buffer): Buffer[] | undefined {
  const fields: Buffer[] = [];
  let offset = 0;
  while (offset < bytes.length) {
    if (offset + 4 > bytes.length) return undefined;
    const end = offset + 4 + bytes.readUInt32BE(offset);
    if (end > bytes.length) return undefined;
    fields.push(bytes.subarray(offset + 4, end));
    offset = end;
  }
  return fields;
}

const isEd25519 = ([key]: readonly Buffer[]): boolean => key?.length === 32;

function isEcdsa([name, point]: readonly Buffer[], curve: string): boolean {
  const known = curves[curve];
  if (known === undefined || point === undefined || name?.toString('latin1') !== curve || point[0] !== 4)
    return false;
  const x = point.subarray(1, 1 + known.coordinateBytes).toString('base64url');
  const y = point.subarray(1 + known.coordinateBytes).toString('base64url');
  return loads({ kty: 'EC', crv: known.jwk, x, y });
}

function isRsa([exponent, modulus]: readonly Buffer[]): boolean {
  if (exponent === undefined || modulus === undefined) return false;
  const value = (integer: Buffer) => BigInt(`0x0${integer.toString('hex')}`);
  const isPositive = [exponent, modulus].every((integer) => (integer[0] ?? 0x80) < 0x80);
  const bits = value(modulus).toString(2).length;
  return isPositive && value(exponent) % 2n === 1n && value(exponent) > 1n && isOddOf(value(modulus), bits);
}

const isOddOf = (modulus: bigint, bits: number): boolean => modulus % 2n === 1n && bits >= MIN_RSA_BITS;

function loads(key: { kty: string; crv: string; x: string; y: string }): boolean {
  try {
    createPublicKey({ format: 'jwk', key });
    return true;
  } catch {
    return false;
  }
}
