const MAX_LENGTH = 500;
/** C0 and C1 controls, line and paragraph separators, and the marks that turn the direction of a text. */
const UNPRINTABLE = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu;

/**
 * Words that a platform or a machine sent, as they may stand in a row, a reply or a log: printable, well-formed, on
 * one line, and at most 500 characters. (PostgreSQL refuses NUL in a text.)
 */
export function cleanText(text: string): string {
  const clean = text
    .slice(0, 4 * MAX_LENGTH)
    .replace(UNPRINTABLE, ' ')
    .trim();
  const short = clean.length <= MAX_LENGTH ? clean : `${clean.slice(0, MAX_LENGTH - 1)}…`;
  return short.toWellFormed();
}
