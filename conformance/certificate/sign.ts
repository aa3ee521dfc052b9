import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import type { Report } from '../report/report.ts';
import { isObject, type JsonObject } from '../text/json.ts';
import { digestOf, isRedactable, redactedIn } from './digest.ts';

/** A key or a report that cannot be used. The message says why. */
export class CertificateError extends Error {
  override readonly name = 'CertificateError';
}

type Kind = 'berth-conformance-report' | 'berth-conformance-monitor';

interface Signature {
  algorithm: 'Ed25519';
  public_key: string;
  value: string;
}

/** Signs a value. `also` becomes a part of its signature, and is signed too. */
export function signed<T extends object, A extends object>(
  kind: Kind,
  value: T,
  key: KeyObject,
  also: A,
): T & { signature: Signature & A } {
  const statement = { algorithm: 'Ed25519' as const, public_key: publicKeyText(key), ...also };
  const message = messageOf(kind, { ...value, signature: statement });
  return { ...value, signature: { ...statement, value: sign(null, message, key).toString('base64') } };
}

/** Signs a report together with the digest of its transcript. @throws {CertificateError} */
export function signReport(report: Report, transcriptSha256: string, privateKeyPem: string): Report {
  const key = readPrivateKey(privateKeyPem);
  return signed('berth-conformance-report', report, key, { transcript_sha256: transcriptSha256 });
}

/** Reads a private key. @throws {CertificateError} if it is not an Ed25519 key in PEM */
export function readPrivateKey(pem: string): KeyObject {
  return ed25519(() => createPrivateKey(pem), 'private');
}

/** Returns the raw bytes of the key in base64, as in a report. @throws {CertificateError} */
export function readPublicKey(pem: string): string {
  return publicKeyText(ed25519(() => createPublicKey(pem), 'public'));
}

/** A signature that is good. */
export interface Signed {
  publicKey: string;
  transcriptSha256: string;
  /** The removed values, as JSON pointers. */
  redacted: string[];
}

/**
 * Checks the signature of a report. `trusted` is the required public key, `mayBeRemoved` says which values the report may
 * do without. @throws {CertificateError}
 */
export function verifySignature(
  report: unknown,
  trusted?: string,
  mayBeRemoved: (path: string) => boolean = isRedactable,
): Signed {
  const { public_key, transcript_sha256 } = verifySigned('berth-conformance-report', report, trusted);
  if (typeof transcript_sha256 !== 'string') throw new CertificateError('its signature is not complete');
  const redacted = redactedIn(report);
  const hidden = redacted.find((path) => !mayBeRemoved(path));
  if (hidden !== undefined)
    throw new CertificateError(`${hidden} was taken out, without which it says nothing`);
  return { publicKey: public_key, transcriptSha256: transcript_sha256, redacted };
}

/** Checks a signature, and returns it. `trusted` is the required public key. @throws {CertificateError} */
export function verifySigned(
  kind: Kind,
  signedValue: unknown,
  trusted?: string,
): JsonObject & { public_key: string } {
  const signature = isObject(signedValue) ? signedValue['signature'] : undefined;
  if (!isObject(signedValue) || !isObject(signature)) throw new CertificateError('it is not signed');
  const { value, ...statement } = signature;
  const { algorithm, public_key } = statement;
  if (algorithm !== 'Ed25519') throw new CertificateError('its signature is not of Ed25519');
  if (typeof public_key !== 'string' || typeof value !== 'string')
    throw new CertificateError('its signature is not complete');
  if (trusted !== undefined && trusted !== public_key)
    throw new CertificateError('it was signed with another key');
  // Node.js ignores what is not base64: such characters would be free text.
  if (!isBase64(public_key) || !isBase64(value)) throw new CertificateError('its signature is not base64');
  const message = messageOf(kind, { ...signedValue, signature: statement });
  if (!verify(null, message, keyOf(public_key), Buffer.from(value, 'base64')))
    throw new CertificateError('it is not what was signed');
  return { ...statement, public_key };
}

function messageOf(kind: Kind, value: unknown): Buffer {
  return Buffer.from(`${kind}/1\n${digestOf(value)}`);
}

/** Whether it is strict base64 of at least one byte. */
const isBase64 = (text: string): boolean =>
  text !== '' && Buffer.from(text, 'base64').toString('base64') === text;

/** Opens a key. @throws {CertificateError} if it is not an Ed25519 key */
function ed25519(open: () => KeyObject, kind: string): KeyObject {
  let key: KeyObject;
  try {
    key = open();
  } catch {
    throw new CertificateError(`the ${kind} key cannot be read: it must be PEM`);
  }
  if (key.asymmetricKeyType !== 'ed25519')
    throw new CertificateError(
      `the ${kind} key is not of Ed25519: \`openssl genpkey -algorithm ed25519\` makes one`,
    );
  return key;
}

/** The 32 bytes of the public key of an Ed25519 key, in base64. */
function publicKeyText(key: KeyObject): string {
  return Buffer.from(key.export({ format: 'jwk' }).x ?? '', 'base64url').toString('base64');
}

/** The public key of its raw bytes in base64. @throws {CertificateError} */
function keyOf(publicKey: string): KeyObject {
  const x = Buffer.from(publicKey, 'base64').toString('base64url');
  return ed25519(() => createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' }), 'public');
}
