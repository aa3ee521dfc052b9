/**
 * Characters that a terminal acts on, that change the direction of text, or that are invisible. Line breaks and tabs
 * are text.
 */
const UNSEEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
/** A faster test: most text has only plain characters. */
const NOT_PLAIN = /[^\n\t -~]/;

/** Escapes such characters as `\u001b`. In a quoted string, JSON and YAML read the escape as the same character. */
export function toPrintable(text: string): string {
  if (!NOT_PLAIN.test(text)) return text;
  return text.replace(UNSEEN, (character) => character.split('').map(toEscape).join(''));
}

/** Also escapes line breaks and tabs: another party's text cannot begin a line of its own. */
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

/** Writes text of several lines to standard output. Adds no line end. */
export function printText(text: string): void {
  process.stdout.write(toPrintable(text));
}

/** Writes text of several lines to standard error. Adds no line end. */
export function printError(text: string): void {
  process.stderr.write(toPrintable(text));
}

/**
 * Prints a table. Each column is as wide as its widest cell. With the widths of a table before it, prints more rows of
 * that one. Returns its widths.
 */
export function printTable(
  head: readonly string[],
  given: readonly (readonly string[])[],
  before?: readonly number[],
): readonly number[] {
  const rows = given.map((row) => row.map(toPrintableLine));
  const widths = head.map((title, column) =>
    Math.max(before?.[column] ?? title.length, ...rows.map((row) => (row[column] ?? '').length)),
  );
  for (const row of before === undefined ? [head, ...rows] : rows)
    printLine(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    );
  return widths;
}

/** Calls `listener` when the reader closes the output. Returns a function that stops that. */
export function onClosedOutput(listener: () => void): () => void {
  process.stdout.once('error', listener);
  return () => process.stdout.off('error', listener);
}

/** Ignores a reader that closes the output early, as `head` does. */
export function ignoreClosedPipes(): void {
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
}
