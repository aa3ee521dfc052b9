import { type Command, Option } from 'commander';
import { Document, visit } from 'yaml';
import { printLine, printTable, printText, toPrintable, toPrintableLine } from '../runtime/print.ts';
import { parseLimit } from './parse.ts';

type Json = string | number | boolean | null;

/** One fact of a record: a column of the table, and a field of the JSON. */
export interface Column<T> {
  head: string;
  /** Its name in JSON. */
  key: string;
  value: (record: T) => Json;
  /** How a person reads it; default: the value as text. */
  text?: (record: T) => string;
  /** How a person reads a null; default: `-`. */
  none?: string;
}

/** Columns of records that have JSON's own fields: each head with the name of its field. `blank`: a null there is nothing. */
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

/** How many characters of a name a table shows: a contract may bound it by the size of a request only. */
const MAX_NAME_SHOWN = 40;

/** Columns of which those with these keys are names that a tenant chose: a table shows their beginning. */
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

/** The beginning of a name, on one line; in quotes where a space begins or ends it. */
export function cutName(name: string, most = MAX_NAME_SHOWN): string {
  // What follows is more than is shown, so a long name is not searched as a whole.
  const characters = [...toPrintableLine(name.slice(0, 4 * most))];
  const shown =
    characters.length <= most ? characters.join('') : `${characters.slice(0, most - 1).join('')}…`;
  return name === name.trim() ? shown : `"${shown}"`;
}

const formats = ['table', 'json', 'yaml'] as const;

/** How a command prints; undefined: as a table, or in sentences. */
export interface OutputFlag {
  output?: (typeof formats)[number] | undefined;
}

export interface ListFlags extends OutputFlag {
  limit?: number;
}

/** `--json`, the short form of `-o json`: the last of them counts. */
class JsonOption extends Option {
  constructor() {
    super('--json', 'the same as -o json');
    this.preset('json');
  }

  override attributeName(): string {
    return 'output';
  }
}

/** For a command that prints. */
export function withOutput(command: Command): Command {
  return command
    .addOption(new Option('-o, --output <format>', 'how to print').choices(formats))
    .addOption(new JsonOption());
}

/** For a command that lists rows; `most`: how many it shows if not told. */
export function withList(command: Command, most?: number): Command {
  const limit = new Option('--limit <count>', 'how many at most').argParser((text) =>
    parseLimit('--limit', text),
  );
  return withOutput(command.addOption(most === undefined ? limit : limit.default(most)));
}

/** How many rows to read for a list: with one more than `--limit`, it is known whether some are left out. */
export function toReadLimit({ limit }: { limit: number }): number {
  return limit + 1;
}

/** For a person: the list ends at `--limit`, and there are more rows. */
export function tellCut(found: number, { limit = found }: ListFlags): void {
  if (found > limit) printLine(`There are more rows: give a --limit above ${limit}.`);
}

/** Whether a program reads it: JSON or YAML. */
export function isData({ output = 'table' }: OutputFlag): boolean {
  return output !== 'table';
}

/**
 * Prints records as a table, or as data with times in RFC 3339 and amounts in US dollars. `none`: the sentence in place of a
 * table without rows.
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
    tellCut(all.length, flags);
  }
}

/** Prints data as one line of JSON, or as a document of YAML. */
export function printData({ output }: OutputFlag, value: unknown): void {
  const json = JSON.stringify(value);
  if (output === 'yaml') printText(`---\n${toYaml(JSON.parse(json))}`);
  else printLine(json);
}

/** Prints what was done: for a program as data, for a person in sentences. */
export function printDone(flags: OutputFlag, value: object, ...sentences: readonly string[]): void {
  if (isData(flags)) printData(flags, value);
  else for (const sentence of sentences) printLine(sentence);
}

/** A text with a character that is printed as an escape is quoted, so that it reads as that character. */
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

/** As JSON has a time: RFC 3339, or null. */
export function toJsonTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

/** As a person reads a time. */
export function toTime(ms: number | null): string {
  return toJsonTime(ms) ?? '-';
}
