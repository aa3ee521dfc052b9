export type JsonObject = { readonly [name: string]: unknown };

const DEEPEST = 200;

/** Undefined if there is no text, it is not JSON, or it is nested too deeply. */
export function parseJson(text: string | undefined): unknown {
  try {
    return text === undefined || text === '' || isNestedDeeper(text, DEEPEST) ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Whether an object in this JSON text has two fields of one name. Parsers keep either of them, so two readers of the
 * text may see different values. `value` is the parsed text.
 */
export function hasDuplicateNames(text: string, value: unknown): boolean {
  let names = 0;
  for (const [, colon] of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"(\s*:)?/g)) if (colon !== undefined) names++;
  return names !== countFields(value);
}

function countFields(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const below = Object.values(value).reduce<number>((sum, item) => sum + countFields(item), 0);
  return below + (Array.isArray(value) ? 0 : Object.keys(value).length);
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether an object has a field that is neither missing nor null. */
export function hasField(value: unknown, name: string): boolean {
  return isObject(value) && value[name] !== undefined && value[name] !== null;
}

/** A field that is a string, or undefined. */
export function stringField(value: unknown, name: string): string | undefined {
  const field = isObject(value) ? value[name] : undefined;
  return typeof field === 'string' ? field : undefined;
}

/** A field that is a number, or undefined. */
export function numberField(value: unknown, name: string): number | undefined {
  const field = isObject(value) ? value[name] : undefined;
  return typeof field === 'number' ? field : undefined;
}

/** The objects in a field that is an array; empty if it is not an array. */
export function objectsField(value: unknown, name: string): JsonObject[] {
  const field = isObject(value) ? value[name] : undefined;
  return Array.isArray(field) ? field.filter(isObject) : [];
}

/** The strings in a field that is an array; empty if it is not an array. */
export function stringsField(value: unknown, name: string): string[] {
  const field = isObject(value) ? value[name] : undefined;
  return Array.isArray(field) ? field.filter((item) => typeof item === 'string') : [];
}

/**
 * The id of an object, for use in a path. The contract forbids numbers, but the clean-up must still address such an
 * object.
 */
export function idOf(value: unknown): string | undefined {
  const id = isObject(value) ? value['id'] : undefined;
  if (typeof id === 'number' && Number.isFinite(id)) return String(id);
  return typeof id === 'string' && id !== '' && id.isWellFormed() ? id : undefined;
}

const STEPS: Readonly<Record<string, number>> = { '[': 1, '{': 1, ']': -1, '}': -1 };

/** Whether objects and arrays are nested deeper than `most`. Scans the text once. */
function isNestedDeeper(text: string, most: number): boolean {
  if (text.length <= most) return false;
  let depth = 0;
  let isInString = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (isInString && character === '\\') at++;
    else if (character === '"') isInString = !isInString;
    else if (!isInString) depth += STEPS[character ?? ''] ?? 0;
    if (depth > most) return true;
  }
  return false;
}
