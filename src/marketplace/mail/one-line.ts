const MAX_LENGTH = 100;

/**
 * What somebody else wrote, fit for a subject or a line of a mail: no line break, no control or formatting character
 * that could make another header, another line or another direction of it, and not much of it.
 */
export function toOneLine(text: string): string {
  const line = text
    .toWellFormed()
    .replace(/[\p{C}\p{Zl}\p{Zp}\s]+/gu, ' ')
    .trim();
  const characters = [...line];
  return characters.length <= MAX_LENGTH ? line : `${characters.slice(0, MAX_LENGTH - 1).join('')}…`;
}
