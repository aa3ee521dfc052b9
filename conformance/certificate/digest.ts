import { createHash } from 'node:crypto';
import { isObject } from '../text/json.ts';

/** The field that replaces a removed value by its digest, so that the signature can still be checked. */
export const REDACTED = '$redacted';

/**
 * The digest of a JSON value, in the canonical form that is signed: SHA-256 of the JSON text for a scalar, of the
 * items' digests for a list, and of the fields sorted by name for an object. A removed value counts as its digest, so
 * removing it does not change the result.
 */
export function digestOf(value: unknown): string {
  if (Array.isArray(value)) return sha256(`[${value.map(digestOf).join(',')}]`);
  if (!isObject(value)) return sha256(JSON.stringify(value) ?? 'null');
  const redacted = redactedDigest(value);
  if (redacted !== undefined) return redacted;
  const fields = Object.keys(value).toSorted();
  return sha256(`{${fields.map((name) => `${JSON.stringify(name)}:${digestOf(value[name])}`).join(',')}}`);
}

/** The digest that replaces a value; undefined for an ordinary value. */
export function redactedDigest(value: unknown): string | undefined {
  if (!isObject(value) || Object.keys(value).length !== 1) return undefined;
  const digest = value[REDACTED];
  return typeof digest === 'string' && /^[0-9a-f]{64}$/.test(digest) ? digest : undefined;
}

/** The digest of a transcript, as `--transcript` writes it. */
export function transcriptDigest(records: readonly unknown[]): string {
  return sha256(records.map((record) => `${JSON.stringify(record)}\n`).join(''));
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
