/** The SQL condition that a JSON column's text has not, for each key, one of the types that `json_type` may say. */
export function lacksAny(column: string, types: Readonly<Record<string, readonly string[]>>): string {
  return Object.entries(types)
    .map(
      ([key, allowed]) => `coalesce(json_type(${column}, '$.${key}'), '') NOT IN ('${allowed.join("','")}')`,
    )
    .join(' OR ');
}
