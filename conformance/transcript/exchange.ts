import { isObject, type JsonObject, objectsField, parseJson, stringField } from '../text/json.ts';
import { printable } from '../text/printable.ts';
import { shortJson } from '../text/wording.ts';
import type { Exchange } from './records.ts';

const parsed = new WeakMap<Exchange, { value: unknown }>();

/** The answer's body as JSON. Undefined if there is none or it is not JSON. */
export function jsonOf(exchange: Exchange): unknown {
  let known = parsed.get(exchange);
  if (known === undefined) {
    known = { value: parseJson(exchange.answer?.body) };
    parsed.set(exchange, known);
  }
  return known.value;
}

/** The status of an exchange, or undefined if there was no answer. */
export function statusOf(exchange: Exchange): number | undefined {
  return exchange.answer?.status;
}

export function isSuccess({ answer }: Exchange): boolean {
  return answer !== undefined && answer.status >= 200 && answer.status < 300;
}

/** Whether a read of one instance, alone at its moment, was answered 200. */
export function isPolledRead(exchange: Exchange): boolean {
  return isReadOfOne(exchange) && !isSideBySide(exchange);
}

/** Whether a read of one instance was answered 200. */
export function isReadOfOne({ request, answer }: Exchange): boolean {
  return request.method === 'GET' && READ_OF_ONE.test(request.path) && answer?.status === 200;
}

/** Whether it is one of several reads of instances at the same moment. */
export function isSideBySide({ step }: Exchange): boolean {
  return step.endsWith('/side-by-side');
}

/** The path of a read of one instance. */
export const READ_OF_ONE = /^\/instances\/[^/?]+(\?|$)/;

/** The object in the body of a 2xx answer. */
export function successOf(exchange: Exchange): JsonObject | undefined {
  const value = isSuccess(exchange) ? jsonOf(exchange) : undefined;
  return isObject(value) ? value : undefined;
}

/** The instances of a 2xx answer. Undefined if it is not a list of them. */
export function listOf(exchange: Exchange): JsonObject[] | undefined {
  const value = successOf(exchange);
  return value !== undefined && Array.isArray(value['instances'])
    ? objectsField(value, 'instances')
    : undefined;
}

/** The request in a few words, e.g. `GET /instances`. */
export function requestOf({ request }: Exchange): string {
  return printable(`${request.method} ${request.path}`, 100);
}

/** The answer in a few words: its status, and the error code, the status of the resource or the start of its body. */
export function answerOf(exchange: Exchange): string {
  const { answer, failure } = exchange;
  if (answer === undefined) return `no answer: ${failure?.message ?? 'the connection was lost'}`;
  const body = jsonOf(exchange);
  if (answer.body === '') return `${answer.status} without a body`;
  if (body === undefined)
    return `${answer.status} with a body that is not JSON: ${printable(answer.body.trim(), 60)}`;
  const error = isObject(body) ? body['error'] : undefined;
  const code = stringField(error, 'code');
  if (code !== undefined) return `${answer.status} ${printable(code, 60)}`;
  const status = stringField(body, 'status');
  return `${answer.status} with ${status === undefined ? shortJson(body) : `status ${printable(status, 60)}`}`;
}

/** Whether the request exceeded the account's quota: lawful, and no statement about capacity. */
export function isBeyondQuota(exchange: Exchange): boolean {
  return codeOfConflict(exchange) === 'quota_exceeded';
}

/** The error code of a 409; undefined for another status or without a code. */
export function codeOfConflict(exchange: Exchange): string | undefined {
  if (statusOf(exchange) !== 409) return undefined;
  const body = jsonOf(exchange);
  return stringField(isObject(body) ? body['error'] : undefined, 'code');
}
