import type { Exchange } from '../transcript/records.ts';
import { isNestedDeeper } from './json-depth.ts';

export type JsonObject = { readonly [name: string]: unknown };

const DEEPEST = 200;

const parsed = new WeakMap<Exchange, { value: unknown }>();

/** The answer's body as JSON; undefined where there is none or it is not JSON. */
export function jsonOf(exchange: Exchange): unknown {
  let known = parsed.get(exchange);
  if (known === undefined) {
    known = { value: parseJson(exchange.answer?.body) };
    parsed.set(exchange, known);
  }
  return known.value;
}

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

/** The status of an exchange, or undefined where no answer came. */
export function statusOf(exchange: Exchange): number | undefined {
  return exchange.answer?.status;
}

/** The object in the body of a 2xx answer. */
export function successOf(exchange: Exchange): JsonObject | undefined {
  const value = isSuccess(exchange) ? jsonOf(exchange) : undefined;
  return isObject(value) ? value : undefined;
}

export function isSuccess({ answer }: Exchange): boolean {
  return answer !== undefined && answer.status >= 200 && answer.status < 300;
}

/** The id of an object, as a path has it. A number, which the contract forbids, is an id all the same to who cleans up. */
export function idOf(value: unknown): string | undefined {
  const id = isObject(value) ? value['id'] : undefined;
  if (typeof id === 'number' && Number.isFinite(id)) return String(id);
  return typeof id === 'string' && id !== '' && id.isWellFormed() ? id : undefined;
}

/** The instances of a 2xx answer; undefined where it is no list of them. */
export function listOf(exchange: Exchange): JsonObject[] | undefined {
  const value = successOf(exchange);
  return value !== undefined && Array.isArray(value['instances'])
    ? objectsField(value, 'instances')
    : undefined;
}
