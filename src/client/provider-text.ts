import { toOneLine } from '../contract/one-line.ts';

const MAX_LENGTH = 200;

/** A provider's text as one line of at most 200 characters, without control characters and without `secrets`. */
export function toLine(text: string, secrets: readonly string[] = []): string {
  const safe = secrets.reduce((rest, secret) => rest.replaceAll(secret, '[credential]'), text);
  return toOneLine(safe, MAX_LENGTH);
}
