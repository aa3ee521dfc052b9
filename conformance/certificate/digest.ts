import { createHash } from 'node:crypto';
import { isObject } from '../text/json.ts';

/** Stands in the place of a value that was taken out: its digest, so that what was signed can still be checked. */
export const REDACTED = '$redacted';

/**
 * The digest of a JSON value, the canonical form that is signed: SHA-256, of the JSON text for a scalar, of the digests
 * of its items for a list, and of its fields in the order of their names for an object. A value that was taken out counts
 * as its digest, so that its removal changes nothing.
 */
export function digestOf(value: unknown): string {
  if (Array.isArray(value)) return sha256(`[${value.map(digestOf).join(',')}]`);
  if (!isObject(value)) return sha256(JSON.stringify(value) ?? 'null');
  const redacted = redactedDigest(value);
  if (redacted !== undefined) return redacted;
  const fields = Object.keys(value).toSorted();
  return sha256(`{${fields.map((name) => `${JSON.stringify(name)}:${digestOf(value[name])}`).join(',')}}`);
}

/** The digest that stands in the place of a value; undefined for a value that is there. */
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
