import { hash } from 'node:crypto';
import type { Answer } from './receive.ts';

/** Ends no header, and has a length that can be sent back and kept for each instance. */
const ETAG = /^(W\/)?"[\x21\x23-\x7e]{0,200}"$/;

/** What an answer is recognised by: the digest of its body, and its entity tag where it has one. */
export function markOf({ bytes, etag }: Answer): string {
  return ETAG.test(etag) ? `${digestOf(bytes)} ${etag}` : digestOf(bytes);
}

/** The entity tag in a mark, to be sent as `If-None-Match`. */
export function etagOf(mark: string): string | undefined {
  const end = mark.indexOf(' ');
  return end < 0 ? undefined : mark.slice(end + 1);
}

/** Whether the answer is the one that has this mark. A 200 is compared by its body, never by its tag. */
export function hasMark(mark: string, { status, bytes }: Answer): boolean {
  if (status === 304) return etagOf(mark) !== undefined;
  return status === 200 && mark.split(' ', 1)[0] === digestOf(bytes);
}

function digestOf(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'base64');
}
