import { createHash } from 'node:crypto';
import { isObject } from '../text/json.ts';
import { Chain } from '../transcript/chain.ts';
import type { TranscriptRecord } from '../transcript/records.ts';

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

/** The parts that may be removed from a signed report: they do not affect the verdict. */
const REDACTABLE = [
  /^\/(base_url|user_agent|exchanges|logins|resources|findings)(\/|$)/,
  /^\/checks\/\d+\/(problems|traces|proof)(\/|$)/,
];

export function isRedactable(path: string): boolean {
  return REDACTABLE.some((pattern) => pattern.test(path));
}

/** The JSON pointers of all removed values. */
export function redactedIn(value: unknown, path = ''): string[] {
  if (redactedDigest(value) !== undefined) return [path];
  if (Array.isArray(value)) return value.flatMap((item, index) => redactedIn(item, `${path}/${index}`));
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, item]) => redactedIn(item, `${path}/${name}`));
}

/** The digest that replaces a value; undefined for an ordinary value. */
function redactedDigest(value: unknown): string | undefined {
  if (!isObject(value) || Object.keys(value).length !== 1) return undefined;
  const digest = value[REDACTED];
  return typeof digest === 'string' && /^[0-9a-f]{64}$/.test(digest) ? digest : undefined;
}

/** The digest of a transcript, as `--transcript` writes it. */
export function transcriptDigest(records: readonly TranscriptRecord[]): string {
  const chain = new Chain();
  return sha256(records.map((record) => `${chain.lineOf(record)}\n`).join(''));
}

export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
