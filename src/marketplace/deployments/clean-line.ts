const MAX_LENGTH = 300;
/** C0 and C1 controls, line and paragraph separators, and the marks that turn the direction of a text. */
const UNPRINTABLE = /[\p{Cc}\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069]+/gu;

/** Words of a provider as a user may read them: one line, printable, well-formed, at most 300 characters. */
export function cleanLine(text: string): string {
  const clean = text
    .slice(0, 4 * MAX_LENGTH)
    .replace(UNPRINTABLE, ' ')
    .trim();
  const short = clean.length <= MAX_LENGTH ? clean : `${clean.slice(0, MAX_LENGTH - 1)}…`;
  return short.toWellFormed();
}
