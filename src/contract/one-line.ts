/**
 * What somebody else wrote, as one line of at most `maxLength` characters: well-formed, without a line break, a control
 * or a formatting character that could make another header, another line or another direction of it.
 */
export function toOneLine(text: string, maxLength: number): string {
  // What follows is more than is kept, so a long text is not searched as a whole.
  const line = text
    .slice(0, 4 * maxLength)
    .toWellFormed()
    .replace(/[\p{C}\p{Z}]+/gu, ' ')
    .trim();
  const characters = [...line];
  return characters.length <= maxLength ? line : `${characters.slice(0, maxLength - 1).join('')}…`;
}
