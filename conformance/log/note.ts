import { createHash, type KeyObject, sign, verify } from 'node:crypto';
import { CertificateError, fromBase64, keyOf, rawKeyOf } from '../certificate/sign.ts';

/** C2SP signed-note: a text and the signatures under it. */
export interface Note {
  /** Ends in a line end. */
  text: string;
  signatures: NoteSignature[];
}

export interface NoteSignature {
  /** The name of the key. */
  name: string;
  /** Four bytes. */
  keyId: Buffer;
  value: Buffer;
}

/** The kinds of keys that this suite knows, as signed-note numbers them. */
export const KEY_TYPE = { ed25519: 1, cosignature: 4 } as const;
export type KeyType = (typeof KEY_TYPE)[keyof typeof KEY_TYPE];

/** The raw bytes of an Ed25519 key, and the name that its signatures must have. */
export interface NoteKey {
  bytes: Buffer;
  /** Absent if any name will do. */
  name?: string;
}

const MAX_BYTES = 100_000;
const MAX_SIGNATURES = 64;
const KEY_ID_BYTES = 4;

/** Reads a signed note. @throws {CertificateError} if it is not of that form, byte for byte */
export function parseNote(bytes: Buffer): Note {
  if (bytes.length > MAX_BYTES) throw new CertificateError(`it is larger than ${MAX_BYTES} bytes`);
  const whole = bytes.toString('utf8');
  if (!Buffer.from(whole).equals(bytes)) throw new CertificateError('it is not UTF-8');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is about control characters
  if (/[\u0000-\u0009\u000b-\u001f]/.test(whole)) throw new CertificateError('it has control characters');
  const end = whole.lastIndexOf('\n\n');
  if (end < 0 || !whole.endsWith('\n')) throw new CertificateError('it is not a signed note');
  const lines = whole.slice(end + 2, -1).split('\n');
  if (lines.length > MAX_SIGNATURES)
    throw new CertificateError(`it has more than ${MAX_SIGNATURES} signatures`);
  return { text: whole.slice(0, end + 1), signatures: lines.map(parseSignature) };
}

function parseSignature(line: string): NoteSignature {
  const [, name = '', base64 = ''] = /^— (\S+) (\S+)$/u.exec(line) ?? [];
  const value = fromBase64(base64);
  if (!isKeyName(name) || value === undefined || value.length <= KEY_ID_BYTES)
    throw new CertificateError('one of its signature lines is not of the form of a signed note');
  return { name, keyId: value.subarray(0, KEY_ID_BYTES), value: value.subarray(KEY_ID_BYTES) };
}

export function formatNote({ text, signatures }: Note): string {
  const lines = signatures.map(
    ({ name, keyId, value }) => `— ${name} ${Buffer.concat([keyId, value]).toString('base64')}\n`,
  );
  return `${text}\n${lines.join('')}`;
}

/** Not empty, no space, no plus, nothing invisible. */
export function isKeyName(name: string): boolean {
  return /^[^\s+\p{Cc}]+$/u.test(name) && name.isWellFormed();
}

export function keyIdOf(name: string, type: KeyType, key: Buffer): Buffer {
  return createHash('sha256')
    .update(`${name}\n`)
    .update(Buffer.of(type))
    .update(key)
    .digest()
    .subarray(0, KEY_ID_BYTES);
}

/** The signatures that name this key. The name and the id do not prove that the key made them. */
export function signaturesOf({ signatures }: Note, { bytes, name }: NoteKey, type: KeyType): NoteSignature[] {
  return signatures.filter(
    (signature) =>
      (name === undefined || signature.name === name) &&
      signature.keyId.equals(keyIdOf(signature.name, type, bytes)),
  );
}

/** Signs the text as `name`. */
export function signText(text: string, name: string, key: KeyObject): NoteSignature {
  return {
    name,
    keyId: keyIdOf(name, KEY_TYPE.ed25519, rawKeyOf(key)),
    value: sign(null, Buffer.from(text), key),
  };
}

/** Whether the signature is the key's of the text. */
export function isSignatureOf(text: string, value: Buffer, key: Buffer): boolean {
  return verify(null, Buffer.from(text), keyOf(key.toString('base64')), value);
}
