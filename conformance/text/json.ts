export type JsonObject = { readonly [name: string]: unknown };

const DEEPEST = 200;

/** Undefined where there is none, it is not JSON, or it is nested too deeply to be walked. */
export function parseJson(text: string | undefined): unknown {
  try {
    return text === undefined || text === '' || isNestedDeeper(text, DEEPEST) ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether an object has a field with a value. One that is null has none. */
export function hasField(value: unknown, name: string): boolean {
  return isObject(value) && value[name] !== undefined && value[name] !== null;
}

/** A field that is a string, or undefined. */
export function textField(value: unknown, name: string): string | undefined {
  const field = isObject(value) ? value[name] : undefined;
  return typeof field === 'string' ? field : undefined;
}

/** A field that is a number, or undefined. */
export function numberField(value: unknown, name: string): number | undefined {
  const field = isObject(value) ? value[name] : undefined;
  return typeof field === 'number' ? field : undefined;
}

/** The objects of a field that is an array; empty where it is none. */
export function objectsField(value: unknown, name: string): JsonObject[] {
  const field = isObject(value) ? value[name] : undefined;
  return Array.isArray(field) ? field.filter(isObject) : [];
}

/** The strings of a field that is an array; empty where it is none. */
export function textsField(value: unknown, name: string): string[] {
  const field = isObject(value) ? value[name] : undefined;
  return Array.isArray(field) ? field.filter((item) => typeof item === 'string') : [];
}

/** The id of an object, as a path has it. A number, which the contract forbids, is an id all the same to who cleans up. */
export function idOf(value: unknown): string | undefined {
  const id = isObject(value) ? value['id'] : undefined;
  if (typeof id === 'number' && Number.isFinite(id)) return String(id);
  return typeof id === 'string' && id !== '' && id.isWellFormed() ? id : undefined;
}

const STEPS: Readonly<Record<string, number>> = { '[': 1, '{': 1, ']': -1, '}': -1 };

/** Whether objects and arrays stand in each other deeper than `most`. One pass, whatever the text is. */
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
