import { type Command, Option } from 'commander';
import { Document, visit } from 'yaml';
import {
  type Column,
  columnsOf,
  kindOfValue,
  shortSpan,
  textOf,
  titleOf,
  toColumns,
  valueIn,
} from '../operator-kit/columns.ts';
import type { Operation, TextPart } from '../operator-kit/operation.ts';
import { parseLimit } from '../operator-kit/parse.ts';
import { printLine, printTable, printText, toPrintable, toPrintableLine } from '../runtime/print.ts';
import type { ChangedRows } from './watch.ts';

/** Maximum characters of a name in a table. A contract may limit names only by the size of a request. */
const MAX_NAME_SHOWN = 40;
/** The same for one object. */
const LONG_NAME = 255;

/** Shortens a name to one line, and quotes it if it begins or ends with a space. */
export function cutName(name: string, most = MAX_NAME_SHOWN): string {
  // Bounds the work for a long name. The slice is longer than the shown text.
  const characters = [...toPrintableLine(name.slice(0, 4 * most))];
  const shown =
    characters.length <= most ? characters.join('') : `${characters.slice(0, most - 1).join('')}…`;
  return name === name.trim() ? shown : `"${shown}"`;
}

const formats = ['table', 'wide', 'json', 'yaml'] as const;

/** Output format of a command. The default is a table, or sentences. */
export interface OutputFlag {
  output?: (typeof formats)[number] | undefined;
}

export interface ListFlags extends OutputFlag {
  limit?: number;
  watch?: true;
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

/** Adds the flag that keeps a list on the screen. */
export function withWatch(command: Command): Command {
  return command.option('-w, --watch', 'then print each row that is new or changes, until Ctrl-C');
}

/** Prints a hint if there are more rows than `--limit`. */
function printCut(found: number, { limit = found }: ListFlags): void {
  if (found > limit) printLine(`There are more rows: give a --limit above ${limit}.`);
}

/** Whether the output is for a program: JSON or YAML. */
export function isData({ output }: OutputFlag): boolean {
  return output === 'json' || output === 'yaml';
}

/** How tables are printed: with exact times and all columns if wide, else with ages at `now`. */
interface Shown {
  now: number;
  isWide: boolean;
}

interface ListTexts {
  columns?: readonly Column[];
  none?: string | undefined;
  now?: number;
  fromEnd?: true | undefined;
  watched?: ChangedRows | undefined;
}

/** Prints rows as a table, or as data. */
export function printRows(
  all: readonly object[],
  flags: ListFlags,
  { columns = columnsOf(all[0] ?? {}), none, now = 0, fromEnd, watched }: ListTexts = {},
): void {
  const { limit = all.length } = flags;
  const shown = fromEnd && limit > 0 ? all.slice(-limit) : all.slice(0, limit);
  const rows = watched?.of(shown) ?? shown;
  const isFirst = watched?.isFirst !== false;
  if (isData(flags)) {
    for (const part of watched === undefined ? [rows] : rows) printData(flags, part);
    return;
  }
  if (rows.length === 0) {
    if (isFirst && none !== undefined) printLine(none);
    return;
  }
  const how = { now, isWide: now === 0 || flags.output === 'wide' };
  const widths = printColumns(columns, rows, how, watched?.widths);
  if (watched !== undefined) watched.widths = widths;
  if (isFirst) printCut(all.length, flags);
}

/** Prints a sentence, rows as a table with a column for each field, or the fields of an object, one a line. */
export function printPart(part: TextPart, shown: Shown = { now: 0, isWide: true }): void {
  if (typeof part === 'string') printLine(part);
  else if (Array.isArray(part)) {
    if (part[0] !== undefined) printColumns(columnsOf(part[0]), part, shown);
  } else printFacts(columnsOf(part), part, shown.now);
}

/** Prints one object as its view declares it, or all its fields. */
export function printDetail(detail: Operation<never>['detail'], reply: object, shown: Shown): void {
  if (detail === undefined) printPart(reply as TextPart, shown);
  else printFacts(toColumns(detail.facts), reply, shown.now);
  for (const { rows, title, columns, none } of detail?.lists ?? []) {
    printLine('');
    const found = (reply as Record<string, object[]>)[rows] ?? [];
    if (found.length === 0) printLine(none);
    else {
      printLine(`${title}:`);
      printColumns(toColumns(columns), found, shown);
    }
  }
}

function printColumns(
  all: readonly Column[],
  rows: readonly object[],
  { now, isWide }: Shown,
  before?: readonly number[],
): readonly number[] {
  const columns = all.filter((column) => isWide || column.isWide !== true);
  const cells = columns.map((column) => {
    const values = rows.map((row) => valueIn(row as Record<string, unknown>, column, now));
    const kind = values.map((value) => kindOfValue(column, value));
    if (kind[0] === 'id' && !isWide) return shortenIds(values.map(String));
    return values.map((value, index) => toCell(kind[index] ?? 'text', value, { now, isWide }));
  });
  return printTable(
    columns.map((column) => headOfColumn(column, isWide)),
    rows.map((_row, index) => cells.map((cellsOfColumn) => cellsOfColumn[index] ?? '')),
    before,
  );
}

function headOfColumn(column: Column, isWide: boolean): string {
  const isAge = column.field === 'created_at' && column.title === undefined && !isWide;
  return isAge ? 'AGE' : titleOf(column).toUpperCase();
}

/** Facts show a time exactly and its age. Those without a value are left out. */
function printFacts(columns: readonly Column[], row: object, now: number): void {
  printTable(
    ['FACT', 'VALUE'],
    columns.flatMap((column) => {
      const value = valueIn(row as Record<string, unknown>, column, now);
      if (value === null || value === undefined) return [];
      const kind = kindOfValue(column, value);
      const exact = toCell(kind, value, { now, isWide: true }, LONG_NAME);
      const age = kind === 'time' && now > 0 ? ` (${ageOf(String(value), now)})` : '';
      return [[column.title ?? column.field.replaceAll('_', ' '), `${exact}${age}`]];
    }),
  );
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

function toCell(
  kind: ReturnType<typeof kindOfValue>,
  value: unknown,
  { now, isWide }: Shown,
  longest?: number,
): string {
  if (value === null || value === undefined) return '-';
  if (kind === 'name') return cutName(String(value), longest);
  return kind === 'time' && !isWide ? ageOf(String(value), now) : textOf(kind, value);
}

/** Such as `2d4h`, or `in 30m`. */
function ageOf(time: string, now: number): string {
  const ms = now - Date.parse(time);
  return ms < 0 ? `in ${shortSpan(-ms)}` : shortSpan(ms);
}

/** Characters of a shortened id after its prefix, such as `inst-`. */
const SHORT_ID = 8;

/** Shortens the ids of a table to their first characters, as many as tell them apart there. */
function shortenIds(ids: readonly string[]): string[] {
  const longest = Math.max(...ids.map((id) => id.length));
  let length = Math.max(...ids.map((id) => id.indexOf('-') + 1)) + SHORT_ID;
  const distinct = new Set(ids).size;
  while (length < longest && new Set(ids.map((id) => id.slice(0, length))).size < distinct) length++;
  return ids.map((id) => id.slice(0, length));
}
