import {
  type AnyPgColumn,
  bigint,
  boolean,
  check,
  customType,
  doublePrecision,
  index,
  integer,
  json,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
} from 'drizzle-orm/pg-core';

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
  integer,
  /** A timestamp, an amount of money, or another integer that exceeds 32 bits. */
  bigint: (name: string) => bigint(name, { mode: 'number' }),
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
