import type { KeyObject } from 'node:crypto';
import { sign } from 'node:crypto';
import { CertificateError, fromBase64, rawKeyOf } from '../certificate/sign.ts';
import { printable } from '../text/printable.ts';
import { HASH_BYTES, type Hash } from './merkle.ts';
import {
  formatNote,
  isSignatureOf,
  KEY_TYPE,
  keyIdOf,
  type Note,
  type NoteKey,
  type NoteSignature,
  parseNote,
  signaturesOf,
  signText,
} from './note.ts';

/** C2SP tlog-checkpoint: what a log signs of its tree. */
export interface Checkpoint {
  /** The name of the log. */
  origin: string;
  /** Number of entries. */
  size: number;
  root: Hash;
  /** With all signatures, as it was read. */
  note: Note;
}

/** What a checkpoint says, as its log signs it. */
function checkpointText(origin: string, size: number, root: Hash): string {
  return `${origin}\n${size}\n${root.toString('base64')}\n`;
}

/** Signs a checkpoint with the log's key. */
export function signCheckpoint(origin: string, size: number, root: Hash, key: KeyObject): Checkpoint {
  const text = checkpointText(origin, size, root);
  return { origin, size, root, note: { text, signatures: [signText(text, origin, key)] } };
}

/** The checkpoint as a file. */
export function formatCheckpoint({ note }: Checkpoint): string {
  return formatNote(note);
}

/**
 * Reads a checkpoint and checks that the log signed it. A key without a name is that of any origin.
 * @throws {CertificateError}
 */
export function openCheckpoint(bytes: Buffer, key: NoteKey): Checkpoint {
  const note = parseNote(bytes);
  const [origin = '', size = '', base64 = ''] = note.text.split('\n');
  const root = fromBase64(base64);
  if (origin === '' || !/^(0|[1-9]\d*)$/.test(size) || root?.length !== HASH_BYTES)
    throw new CertificateError('it does not say origin, size and root');
  if (!Number.isSafeInteger(Number(size)))
    throw new CertificateError(`its size ${printable(size, 30)} is too large`);
  if (key.name !== undefined && key.name !== origin)
    throw new CertificateError(`it is of the log ${printable(origin, 100)}, and not of ${key.name}`);
  const signed = signaturesOf(note, { ...key, name: origin }, KEY_TYPE.ed25519);
  if (signed.length === 0 || !signed.every(({ value }) => isSignatureOf(note.text, value, key.bytes)))
    throw new CertificateError(`the key of the log did not sign it as ${printable(origin, 100)}`);
  return { origin, size: Number(size), root, note };
}

/** C2SP tlog-cosignature, of Ed25519: `key` says that this is the largest consistent checkpoint that it has seen. */
export function cosign({ note }: Checkpoint, name: string, key: KeyObject, wallMs: number): NoteSignature {
  const time = BigInt(Math.floor(wallMs / 1000));
  const stamp = Buffer.alloc(8);
  stamp.writeBigUInt64BE(time);
  const value = sign(null, Buffer.from(cosignedText(note.text, time)), key);
  return {
    name,
    keyId: keyIdOf(name, KEY_TYPE.cosignature, rawKeyOf(key)),
    value: Buffer.concat([stamp, value]),
  };
}

export interface Cosigned {
  name: string;
  /** Milliseconds since the epoch. */
  wallMs: number;
  signature: NoteSignature;
}

/**
 * The newest cosignature of this key under the checkpoint; undefined if there is none.
 * @throws {CertificateError} if one is wrong
 */
export function cosignatureOf({ note }: Checkpoint, key: NoteKey): Cosigned | undefined {
  const found = signaturesOf(note, key, KEY_TYPE.cosignature).map((signature) => {
    const { name, value } = signature;
    if (value.length !== STAMPED_BYTES) throw new CertificateError(`the cosignature of ${name} is cut short`);
    const time = value.readBigUInt64BE();
    if (!isSignatureOf(cosignedText(note.text, time), value.subarray(STAMP_BYTES), key.bytes))
      throw new CertificateError(`the cosignature of ${printable(name, 100)} is not of this checkpoint`);
    return { name, wallMs: Number(time) * 1000, signature };
  });
  return found.toSorted((a, b) => b.wallMs - a.wallMs)[0];
}

const STAMP_BYTES = 8;
const STAMPED_BYTES = STAMP_BYTES + 64;

const cosignedText = (text: string, time: bigint): string => `cosignature/v1\ntime ${time}\n${text}`;

/** The checkpoint with one more signature, which replaces an earlier one of the same key. */
export function withSignature(checkpoint: Checkpoint, added: NoteSignature): Checkpoint {
  const others = checkpoint.note.signatures.filter(
    ({ name, keyId }) => name !== added.name || !keyId.equals(added.keyId),
  );
  return { ...checkpoint, note: { ...checkpoint.note, signatures: [...others, added] } };
}
