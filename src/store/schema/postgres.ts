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
 * drizzle's builders for PostgreSQL. Timestamps are milliseconds since 1970. JSON is stored as it was written: `jsonb`
 * would sort its keys.
 */
export const postgres = {
  table: pgTable,
  text,
  /**
   * Text that a user chose, as JSON: PostgreSQL's `text` holds no NUL, and neither database's holds a lone surrogate.
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
  /** A timestamp, an amount of money, or another whole number that 32 bits do not hold. */
  bigint: (name: string) => bigint(name, { mode: 'number' }),
  /** Numbers rows in the order in which they are inserted. */
  sequence: (name: string) => bigint(name, { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
  double: doublePrecision,
  json,
  primaryKey,
  index,
  uniqueIndex,
  check,
};

/** A dialect, by PostgreSQL's types: the queries are written against them and run on SQLite too. */
export type Dialect = typeof postgres;
