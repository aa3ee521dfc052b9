import { CertificateError, fromBase64, readPublicKey } from '../certificate/sign.ts';
import { HASH_BYTES } from './merkle.ts';
import { isKeyName, type KeyType, keyIdOf, type NoteKey } from './note.ts';

/**
 * Reads a public key: PEM, which has no name, or a verifier key of signed-note (`name+id+base64`) of this type.
 * @throws {CertificateError}
 */
export function readNoteKey(text: string, type: KeyType): NoteKey {
  if (text.includes('-----BEGIN')) return { bytes: Buffer.from(readPublicKey(text), 'base64') };
  const [, name = '', id = '', base64 = ''] = /^([^+]+)\+([0-9a-f]{8})\+(\S+)$/.exec(text.trim()) ?? [];
  const typed = fromBase64(base64);
  if (!isKeyName(name) || typed === undefined)
    throw new CertificateError('it is neither a PEM key nor a verifier key (name+id+base64)');
  const key = typed.subarray(1);
  if (typed[0] !== type || key.length !== HASH_BYTES)
    throw new CertificateError(`it is not a verifier key of type ${type}`);
  if (keyIdOf(name, type, key).toString('hex') !== id)
    throw new CertificateError('its id is not that of its name and key');
  return { bytes: key, name };
}

/** The verifier key of signed-note: what a reader of the log must know. */
export function verifierKey(name: string, type: KeyType, key: Buffer): string {
  const typed = Buffer.concat([Buffer.of(type), key]).toString('base64');
  return `${name}+${keyIdOf(name, type, key).toString('hex')}+${typed}`;
}
