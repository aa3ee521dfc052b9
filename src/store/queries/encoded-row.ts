import { sql } from 'drizzle-orm';

interface Column {
  mapToDriverValue(value: unknown): unknown;
}

/** Encodes a row for the driver, and leaves out keys that are not columns of `table`. For {@link asEncoded}. */
export function encodeRow<Row extends object>(table: object, row: Row): Row {
  const columns = table as Record<string, Column>;
  return Object.fromEntries(
    Object.entries(row).flatMap(([key, value]) => {
      const column = columns[key];
      return column === undefined ? [] : [[key, value === null ? null : column.mapToDriverValue(value)]];
    }),
  ) as Row;
}

/**
 * Placeholders of a prepared statement for values that {@link encodeRow} has encoded. drizzle would encode them again,
 * and turn the null of a JSON column into text.
 */
export function asEncoded<Row extends object>(placeholders: Row): Row {
  return Object.fromEntries(
    Object.entries(placeholders).map(([key, placeholder]) => [key, sql`${placeholder}`]),
  ) as Row;
}
