/** What a terminal acts on, what changes the direction of text, and what is invisible; line breaks and tabs are text. */
const UNSEEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
/** Most text has none of them, and this is quicker to find. */
const NOT_PLAIN = /[^\n\t -~]/;

/** The text with such characters as `\u001b`, which JSON and YAML read in a quoted string as the same character. */
export function toPrintable(text: string): string {
  if (!NOT_PLAIN.test(text)) return text;
  return text.replace(UNSEEN, (character) => character.split('').map(toEscape).join(''));
}

/** The same on one line: text of others cannot begin a line of its own. */
export function toPrintableLine(text: string): string {
  return toPrintable(text).replace(/[\n\t]/g, toEscape);
}

function toEscape(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Writes one line to standard output. */
export function printLine(text: string): void {
  process.stdout.write(`${toPrintableLine(text)}\n`);
}

/** Writes text that has lines of its own to standard output, as it ends. */
export function printText(text: string): void {
  process.stdout.write(toPrintable(text));
}

/** Writes text that has lines of its own to standard error, as it ends. */
export function printError(text: string): void {
  process.stderr.write(toPrintable(text));
}

/** Columns as wide as their widest cell. */
export function printTable(head: readonly string[], given: readonly (readonly string[])[]): void {
  const rows = given.map((row) => row.map(toPrintableLine));
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

/** The reader of the output may stop early, as `head` does. */
export function ignoreClosedPipes(): void {
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
}
