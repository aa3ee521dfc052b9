import { hash } from 'node:crypto';
import type { Answer } from './receive.ts';

/** A valid header value, short enough to be sent back and stored for each instance. */
const ETAG = /^(W\/)?"[\x21\x23-\x7e]{0,200}"$/;

/** The mark by which an answer is recognised: the digest of its body, and its entity tag if it has one. */
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
