/**
 * Invisible characters: control characters (including the escape that starts an ANSI sequence), direction marks,
 * zero-width characters, line and paragraph separators, lone surrogates.
 */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u;

const named: Readonly<Record<string, string>> = { '\t': '\\t', '\n': '\\n', '\r': '\\r' };

/**
 * Makes untrusted text safe for a terminal, on one line: invisible characters become escapes (`\n`, `\x1b`, `\u202e`,
 * `\u{e0041}`). `… (N more characters)` follows after `maxLength` characters, counted in the original text. For display
 * only: a backslash stays one backslash, so the result cannot be reversed.
 */
export function printable(text: string, maxLength: number): string {
  let shown = '';
  let taken = 0;
  for (const character of text) {
    const next = UNSEEN.test(character) ? toEscape(character) : character;
    if (shown.length + next.length > maxLength) {
      const more = countCharacters(text.slice(taken));
      return `${shown}… (${more} more ${more === 1 ? 'character' : 'characters'})`;
    }
    shown += next;
    taken += character.length;
  }
  return shown;
}

/** The suite's own terminal output: colours, and redrawing the progress line. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is about control characters
const OWN = /(\r\u001b\[K|\u001b\[(?:0|1|2|3[1236])(?:;(?:1|2|3[1236]))*m)/u;
const UNSEEN_IN_LINES = new RegExp(`(?!\\n)${UNSEEN.source}`, 'gu');

/**
 * The last filter of all output: escapes invisible characters, except line ends and, on a terminal, the suite's own
 * sequences.
 */
export function printableLines(text: string, isTerminal: boolean): string {
  const escaped = (part: string): string => part.replace(UNSEEN_IN_LINES, toEscape);
  if (!isTerminal) return escaped(text);
  return text
    .split(OWN)
    .map((part, index) => (index % 2 === 1 ? part : escaped(part)))
    .join('');
}

/** Whether all characters of `text` are visible, so that `printable` does not change them. */
export function isPrintable(text: string): boolean {
  return !UNSEEN.test(text);
}

function toEscape(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  if (code < 0x100) return named[character] ?? `\\x${hex.padStart(2, '0')}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, '0')}` : `\\u{${hex}}`;
}

function countCharacters(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}
