import { sql } from 'drizzle-orm';

interface Column {
  mapToDriverValue(value: unknown): unknown;
}

/** A row as the driver takes it: each of its keys is a column of `table`. For {@link asEncoded}. */
export function encodeRow<Row extends object>(table: object, row: Row): Row {
  const columns = table as Record<string, Column>;
  return Object.fromEntries(
    Object.entries(row).map(([key, value]) => [
      key,
      value === null ? null : columns[key]?.mapToDriverValue(value),
    ]),
  ) as Row;
}

/**
 * Placeholders of a prepared statement whose values {@link encodeRow} has made. drizzle would encode them itself, and
 * make text of the null of a JSON column.
 */
export function asEncoded<Row extends object>(placeholders: Row): Row {
  return Object.fromEntries(
    Object.entries(placeholders).map(([key, placeholder]) => [key, sql`${placeholder}`]),
  ) as Row;
}
