import type { Command } from 'commander';
import { printLine, printTable } from '../runtime/print.ts';

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

export interface JsonFlag {
  json?: true;
}

/** For a command that lists something. */
export function withJson(command: Command): Command {
  return command.option('--json', 'print JSON');
}

/**
 * Prints records as a table, or as one line of JSON with times in RFC 3339 and amounts in US dollars. `none`: the sentence in
 * place of a table without rows.
 */
export function printRecords<T>(
  records: readonly T[],
  columns: readonly Column<T>[],
  { json }: JsonFlag,
  none?: string,
): void {
  if (json) printJson(records.map((record) => toFields(record, columns)));
  else if (records.length === 0 && none !== undefined) printLine(none);
  else
    printTable(
      columns.map(({ head }) => head),
      records.map((record) => toCells(record, columns)),
    );
}

export function printJson(value: unknown): void {
  printLine(JSON.stringify(value));
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
