import {
  type AnySQLiteColumn,
  blob,
  check,
  customType,
  index,
  integer,
  primaryKey,
  real,
  sqliteTable,
  text,
  uniqueIndex,
} from 'drizzle-orm/sqlite-core';
import { type Dialect, toWhole } from './postgres.ts';

const whole = customType<{ data: number }>({ dataType: () => 'integer', toDriver: toWhole });

const builders: Record<keyof Dialect, unknown> = {
  table: sqliteTable,
  text,
  verbatim: customType<{ data: string; driverData: string }>({
    dataType: () => 'text',
    toDriver: (text) => JSON.stringify(text),
    fromDriver: (text) => JSON.parse(text),
  }),
  idOf: (name: string, target: () => AnySQLiteColumn) => text(name).notNull().references(target),
  bytes: (name: string) => blob(name, { mode: 'buffer' }),
  boolean: (name: string) => integer(name, { mode: 'boolean' }),
  integer: whole,
  bigint: whole,
  sequence: (name: string) => integer(name).primaryKey(),
  double: real,
  json: (name: string) => text(name, { mode: 'json' }),
  primaryKey,
  index,
  uniqueIndex,
  check,
};

/**
 * drizzle's builders for SQLite. Their types differ from PostgreSQL's, but the methods that the definitions and queries
 * use have the same names. The shared suites of the stores run on both.
 */
export const sqlite = builders as Dialect;
