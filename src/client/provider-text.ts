const MAX_LENGTH = 200;

/** A provider's text as one line of at most 200 characters, without control characters and without `secrets`. */
export function toLine(text: string, secrets: readonly string[] = []): string {
  const safe = secrets.reduce((rest, secret) => rest.replaceAll(secret, '[credential]'), text);
  // What follows is more than is kept, so a long text is not searched as a whole.
  const line = safe
    .slice(0, MAX_LENGTH * 4)
    .toWellFormed()
    .replace(/[\p{C}\p{Z}]+/gu, ' ')
    .trim();
  const letters = [...line];
  return letters.length <= MAX_LENGTH ? line : `${letters.slice(0, MAX_LENGTH - 1).join('')}…`;
}
