import { type Command, Option } from 'commander';
import { Document, visit } from 'yaml';
import { usdToDollars } from '../contract/values.ts';
import type { TextPart } from '../operator-kit/operation.ts';
import { headOf, isUsd } from '../operator-kit/views/values.ts';
import { printLine, printTable, printText, toPrintable, toPrintableLine } from '../runtime/print.ts';
import { parseLimit } from './parse.ts';

/** Maximum characters of a name in a table. A contract may limit names only by the size of a request. */
const MAX_NAME_SHOWN = 40;
/** The same for one object. */
const LONG_NAME = 255;

/** Fields whose values tenants choose. */
const NAMES: ReadonlySet<string> = new Set(['name', 'account', 'label']);

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

/** Prints a hint if there are more rows than `--limit`. */
export function printCut(found: number, { limit = found }: ListFlags): void {
  if (found > limit) printLine(`There are more rows: give a --limit above ${limit}.`);
}

/** Whether the output is for a program: JSON or YAML. */
export function isData({ output = 'table' }: OutputFlag): boolean {
  return output !== 'table';
}

/** Prints rows as a table, or as data. `hidden`: fields that only data has; `none`: the sentence for an empty table. */
export function printRows(
  all: readonly object[],
  flags: ListFlags,
  { hidden = [], none }: { hidden?: readonly string[]; none?: string } = {},
): void {
  const rows = all.slice(0, flags.limit);
  if (isData(flags)) printData(flags, rows);
  else if (rows.length === 0 && none !== undefined) printLine(none);
  else {
    printPart(
      rows.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => !hidden.includes(name)))),
    );
    printCut(all.length, flags);
  }
}

/** Prints a sentence, rows as a table with a column for each field, or the fields of an object, one a line. */
export function printPart(part: TextPart): void {
  if (typeof part === 'string') printLine(part);
  else if (Array.isArray(part)) {
    if (part[0] === undefined) return;
    printTable(
      Object.keys(part[0]).map((name) => headOf(name).toUpperCase()),
      part.map((row) => Object.entries(row).map(([name, value]) => toCell(name, value))),
    );
  } else
    printTable(
      ['FACT', 'VALUE'],
      Object.entries(part).map(([name, value]) => [
        name.replaceAll('_', ' '),
        toCell(name, value, LONG_NAME),
      ]),
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

function toCell(name: string, value: unknown, longest?: number): string {
  if (value === null || value === undefined) return '-';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  if (typeof value === 'number') return isUsd(name) ? usdToDollars(value) : String(value);
  if (typeof value === 'string') return NAMES.has(name) ? cutName(value, longest) : value;
  if (Array.isArray(value)) return value.map((one) => toCell('', one)).join(', ');
  return Object.entries(value)
    .map(([key, one]) => `${key}=${typeof one === 'string' ? one : JSON.stringify(one)}`)
    .join(' ');
}
