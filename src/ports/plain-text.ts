/** Every place that stores text keeps a plain one as it is. PostgreSQL refuses a NUL, and UTF-8 has no lone surrogates. */
export const isPlainText = (text: string): boolean => !text.includes('\0') && text.isWellFormed();

export const EXPECTED_PLAIN_TEXT = 'expected text without NUL or half a surrogate pair';

/** Returns the paths of the texts in a JSON value that are not plain, keys included. */
export function pathsOfUnplainText(value: unknown, path: readonly PropertyKey[] = []): PropertyKey[][] {
  if (typeof value === 'string') return isPlainText(value) ? [] : [[...path]];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) =>
    isPlainText(key)
      ? pathsOfUnplainText(inner, [...path, Array.isArray(value) ? Number(key) : key])
      : [[...path]],
  );
}
