import { type Command, Option } from 'commander';
import { Document, visit } from 'yaml';
import { printLine, printTable, printText, toPrintable, toPrintableLine } from '../runtime/print.ts';
import { parseLimit } from './parse.ts';

type Json = string | number | boolean | null;

/** A value of a record: a column of the table, and a field of the JSON. */
export interface Column<T> {
  head: string;
  /** Its name in JSON. */
  key: string;
  value: (record: T) => Json;
  /** The text in the table. By default it is the value as text. */
  text?: (record: T) => string;
  /** The text in the table for null. The default is `-`. */
  none?: string;
}

/** Creates a column for each heading, from the field that it names. In a `blank` column, null is shown as empty. */
export function fieldColumns<T extends object>(
  heads: Readonly<Record<string, Extract<keyof T, string>>>,
  blank: readonly (keyof T)[] = [],
): Column<T>[] {
  return Object.entries(heads).map(([head, key]) => ({
    head,
    key,
    value: (record) => record[key] as Json,
    ...(blank.includes(key) && { none: '' }),
  }));
}

/** Maximum characters of a name in a table. A contract may limit names only by the size of a request. */
const MAX_NAME_SHOWN = 40;

/** Cuts the columns with these keys in tables: they are names that tenants chose. */
export function withNames<T>(columns: readonly Column<T>[], ...keys: readonly string[]): Column<T>[] {
  return columns.map((column) =>
    keys.includes(column.key)
      ? { ...column, text: (record) => toNameText(column.value(record), column.none) }
      : column,
  );
}

function toNameText(value: Json, none = '-'): string {
  return value === null ? none : cutName(String(value));
}

/** Shortens a name to one line, and quotes it if it begins or ends with a space. */
export function cutName(name: string, most = MAX_NAME_SHOWN): string {
  // Bounds the work for a long name. The slice is longer than the shown text.
  const characters = [...toPrintableLine(name.slice(0, 4 * most))];
  const shown =
    characters.length <= most ? characters.join('') : `${characters.slice(0, most - 1).join('')}…`;
  return name === name.trim() ? shown : `"${shown}"`;
}

const formats = ['table', 'json', 'yaml'] as const;

/** Output format of a command. The default is a table, or sentences. */
export interface OutputFlag {
  output?: (typeof formats)[number] | undefined;
}

export interface ListFlags extends OutputFlag {
  limit?: number;
}

/** `--json`, short for `-o json`. The last of the two wins. */
class JsonOption extends Option {
  constructor() {
    super('--json', 'the same as -o json');
    this.preset('json');
  }

  override attributeName(): string {
    return 'output';
  }
}

/** Adds the output flags to a command. */
export function withOutput(command: Command): Command {
  return command
    .addOption(new Option('-o, --output <format>', 'how to print').choices(formats))
    .addOption(new JsonOption());
}

/** Adds the flags of a list; `most`: its default limit. */
export function withList(command: Command, most?: number): Command {
  const limit = new Option('--limit <count>', 'how many at most').argParser((text) =>
    parseLimit('--limit', text),
  );
  return withOutput(command.addOption(most === undefined ? limit : limit.default(most)));
}

/** Number of rows to read for a list: one more than `--limit` shows whether rows are left out. */
export function toReadLimit({ limit }: { limit: number }): number {
  return limit + 1;
}

/** Prints a hint if there are more rows than `--limit`. */
export function printCut(found: number, { limit = found }: ListFlags): void {
  if (found > limit) printLine(`There are more rows: give a --limit above ${limit}.`);
}

/** Whether the output is for a program: JSON or YAML. */
export function isData({ output = 'table' }: OutputFlag): boolean {
  return output !== 'table';
}

/**
 * Prints records as a table, or as data with times in RFC 3339 and amounts in US dollars. `none` is the sentence for an
 * empty table.
 */
export function printRecords<T>(
  all: readonly T[],
  columns: readonly Column<T>[],
  flags: ListFlags,
  none?: string,
): void {
  const records = all.slice(0, flags.limit);
  if (isData(flags))
    printData(
      flags,
      records.map((record) => toFields(record, columns)),
    );
  else if (records.length === 0 && none !== undefined) printLine(none);
  else {
    printTable(
      columns.map(({ head }) => head),
      records.map((record) => toCells(record, columns)),
    );
    printCut(all.length, flags);
  }
}

/** Prints data as one line of JSON, or as a YAML document. */
export function printData({ output }: OutputFlag, value: unknown): void {
  const json = JSON.stringify(value);
  if (output === 'yaml') printText(`---\n${toYaml(JSON.parse(json))}`);
  else printLine(json);
}

/** Prints the result of an action: as data for a program, else as sentences. */
export function printDone(flags: OutputFlag, value: object, ...sentences: readonly string[]): void {
  if (isData(flags)) printData(flags, value);
  else for (const sentence of sentences) printLine(sentence);
}

/** Converts to YAML. A text with escaped characters is quoted, so that they read back as the same characters. */
function toYaml(value: unknown): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar: (_key, node) => {
      if (typeof node.value === 'string' && toPrintable(node.value) !== node.value)
        node.type = 'QUOTE_DOUBLE';
    },
  });
  return document.toString({ lineWidth: 0 });
}

export function toFields<T>(record: T, columns: readonly Column<T>[]): Record<string, Json> {
  return Object.fromEntries(columns.map(({ key, value }) => [key, value(record)]));
}

function toCells<T>(record: T, columns: readonly Column<T>[]): string[] {
  return columns.map(({ value, text, none = '-' }) => text?.(record) ?? toCell(value(record), none));
}

function toCell(value: Json, none: string): string {
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return value === null ? none : String(value);
}

/** Formats a time for JSON: RFC 3339, or null. */
export function toJsonTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

/** Formats a time for a table. */
export function toTime(ms: number | null): string {
  return toJsonTime(ms) ?? '-';
}
