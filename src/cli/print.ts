import { toPrintable } from './to-printable.ts';

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
