import { createHash, createPublicKey, type JsonWebKeyInput, verify } from 'node:crypto';
import ssh2, { type AuthContext, type PublicKeyAuthContext } from 'ssh2';

const USER_PRESENT = 0x01;
/** Flags (1 byte) and counter (4 bytes) after the signature itself. */
const TRAILER_BYTES = 5;
const P256_COORDINATE_BYTES = 32;

/**
 * Verifies a security key's signature over `message` (OpenSSH PROTOCOL.u2f) and requires user presence. `blob` is the
 * public key. `signature` is what ssh2's server passes for an algorithm unknown to it: the bytes after the
 * algorithm's name and the length of the inner string.
 */
function verifySecurityKeySignature(blob: Buffer, message: Buffer, signature: Buffer): boolean {
  try {
    const key = parseKey(blob);
    const trailer = signature.subarray(-TRAILER_BYTES);
    const proper = signature.subarray(0, -TRAILER_BYTES);
    if (trailer.length !== TRAILER_BYTES || ((trailer[0] ?? 0) & USER_PRESENT) === 0) return false;
    const signed = Buffer.concat([sha256(key.application), trailer, sha256(message)]);
    return key.verify(signed, proper);
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

interface SecurityKey {
  application: Buffer;
  verify(signed: Buffer, proper: Buffer): boolean;
}

function parseKey(blob: Buffer): SecurityKey {
  const fields = readStrings(blob);
  const [type] = fields;
  if (String(type) === 'sk-ssh-ed25519@openssh.com') {
    const [, point, application] = fields;
    if (point?.length !== 32 || application === undefined)
      throw new RangeError('not an Ed25519 security key');
    const key = publicKey({ kty: 'OKP', crv: 'Ed25519', x: point.toString('base64url') });
    return { application, verify: (signed, proper) => verify(null, signed, key, proper) };
  }
  const [, , point, application] = fields;
  if (
    String(type) !== 'sk-ecdsa-sha2-nistp256@openssh.com' ||
    point?.length !== 65 ||
    application === undefined
  )
    throw new RangeError('not a security key');
  const x = point.subarray(1, 33).toString('base64url');
  const y = point.subarray(33).toString('base64url');
  const key = publicKey({ kty: 'EC', crv: 'P-256', x, y });
  return {
    application,
    verify(signed, proper) {
      const [r, s] = readStrings(proper);
      if (r === undefined || s === undefined) return false;
      const coordinates = Buffer.concat([toCoordinate(r), toCoordinate(s)]);
      return verify('sha256', signed, { key, dsaEncoding: 'ieee-p1363' }, coordinates);
    },
  };
}

function publicKey(key: JsonWebKeyInput['key']): ReturnType<typeof createPublicKey> {
  try {
    return createPublicKey({ key, format: 'jwk' });
  } catch {
    throw new RangeError('not a point on the curve');
  }
}

/** Converts an mpint (RFC 4251 §5) to an unsigned number of fixed length. */
function toCoordinate(mpint: Buffer): Buffer {
  const digits = mpint[0] === 0 ? mpint.subarray(1) : mpint;
  if (digits.length > P256_COORDINATE_BYTES) throw new RangeError('number too large');
  return Buffer.concat([Buffer.alloc(P256_COORDINATE_BYTES - digits.length), digits]);
}

function sha256(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest();
}

/** Reads length-prefixed strings (RFC 4251 §5). @throws {RangeError} if one extends past the end */
function readStrings(bytes: Buffer): Buffer[] {
  const strings: Buffer[] = [];
  for (let offset = 0; offset < bytes.length; ) {
    const start = offset + 4;
    offset = start + bytes.readUInt32BE(offset);
    if (offset > bytes.length) throw new RangeError('string runs past the end');
    strings.push(bytes.subarray(start, offset));
  }
  return strings;
}

/**
 * Whether to accept a key. A query needs a key that equals one of `authorizedKeys` byte for byte; a login needs a
 * valid signature too.
 */
export function isAuthorized(context: AuthContext, authorizedKeys: readonly string[]): boolean {
  if (context.method !== 'publickey') return false;
  const { algo, data } = context.key;
  const offered = `${algo} ${data.toString('base64')}`;
  const line = authorizedKeys.find((known) => known.split(/\s+/, 2).join(' ') === offered);
  if (line === undefined || isSha1(context)) return false;
  return context.signature === undefined || isSignedBy(line, context);
}

/** The plain `ssh-rsa` algorithm, which current sshd refuses. For it, ssh2 gives no hash. */
function isSha1(context: PublicKeyAuthContext): boolean {
  return context.key.algo === 'ssh-rsa' && context.hashAlgo === undefined;
}

function isSignedBy(line: string, context: PublicKeyAuthContext): boolean {
  const { signature, blob, key, hashAlgo } = context;
  if (signature === undefined || blob === undefined) return false;
  // ssh2 does not know security keys: it passes their signature without the algorithm's name.
  if (key.algo.startsWith('sk-')) return verifySecurityKeySignature(key.data, blob, signature);
  const parsed = ssh2.utils.parseKey(line);
  return !(parsed instanceof Error) && parsed.verify(blob, signature, hashAlgo) === true;
}
