import {
  type AnyPgColumn,
  bigint,
  boolean,
  check,
  customType,
  doublePrecision,
  index,
  json,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core';
import { NotBindable } from '../bindable.ts';

/** SQLite would store a fraction in a column of integers. PostgreSQL refuses it. @throws {NotBindable} */
export function toWhole(value: number): number {
  // A placeholder of a prepared statement may be null.
  if (Number.isInteger(value ?? 0)) return value;
  throw new NotBindable('the database was given a fraction or no number: expected a whole number');
}

/**
 * drizzle's builders for PostgreSQL. Timestamps are milliseconds since 1970. JSON is stored verbatim: `jsonb` would
 * sort its keys.
 */
export const postgres = {
  table: pgTable,
  text,
  /**
   * A user's text, stored as JSON: PostgreSQL's `text` cannot hold a NUL, and neither database can store a lone
   * surrogate.
   */
  verbatim: customType<{ data: string; driverData: string }>({
    dataType: () => 'json',
    toDriver: (text) => JSON.stringify(text),
  }),
  /** The id of a row of another table. */
  idOf: (name: string, target: () => AnyPgColumn) => text(name).notNull().references(target),
  bytes: customType<{ data: Buffer }>({ dataType: () => 'bytea' }),
  boolean,
  /** A small whole number: 32 bits. */
  integer: customType<{ data: number }>({ dataType: () => 'integer', toDriver: toWhole }),
  /** A timestamp, an amount of money, or another integer that exceeds 32 bits. */
  bigint: customType<{ data: number; driverData: number | string }>({
    dataType: () => 'bigint',
    toDriver: toWhole,
    fromDriver: Number,
  }),
  /** Numbers rows in the order of insertion. */
  sequence: (name: string) => bigint(name, { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
  double: doublePrecision,
  json,
  primaryKey,
  index,
  uniqueIndex,
  check,
};

/** A dialect, by PostgreSQL's types: the queries are written against them and also run on SQLite. */
export type Dialect = typeof postgres;
