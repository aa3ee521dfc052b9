/** What a terminal acts on, or what turns the direction of the text around it; line breaks and tabs are text. */
const ACTED_ON =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it escapes
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** The text with such characters as `\u001b`: names are whatever a user called something. */
export function toPrintable(text: string): string {
  return text.replace(ACTED_ON, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/** Writes a line for the person or script that called. */
export function printLine(text: string): void {
  process.stdout.write(`${toPrintable(text)}\n`);
}

/** Columns as wide as their widest cell. */
export function printTable(head: readonly string[], given: readonly (readonly string[])[]): void {
  const rows = given.map((row) => row.map(toCell));
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)),
  );
  for (const row of [head, ...rows])
    printLine(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    );
}

/** One line, as wide as it looks. */
function toCell(text: string): string {
  return toPrintable(text).replace(/[\n\t]/g, (character) => (character === '\n' ? '\\u000a' : '\\u0009'));
}
