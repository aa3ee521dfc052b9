import type { Exchange } from '../transcript/records.ts';
import { isObject, jsonOf, textField } from '../wire/json.ts';
import { printable } from '../wire/printable.ts';

/** A value of a stranger as it stands in a sentence: as JSON, cut off where it is long. */
export function inShort(value: unknown, maxLength = 60): string {
  return printable(JSON.stringify(value) ?? 'nothing', maxLength);
}

/** The request in short, e.g. `GET /instances`. */
export function requestOf({ request }: Exchange): string {
  return printable(`${request.method} ${request.path}`, 100);
}

/** The answer in short: its status, and the code of an error or what else its body is. */
export function answerOf(exchange: Exchange): string {
  const { answer, failure } = exchange;
  if (answer === undefined) return `no answer: ${failure?.message ?? 'the connection was lost'}`;
  const body = jsonOf(exchange);
  if (answer.body === '') return `${answer.status} without a body`;
  if (body === undefined)
    return `${answer.status} with a body that is not JSON: ${printable(answer.body.trim(), 60)}`;
  const error = isObject(body) ? body['error'] : undefined;
  const code = textField(error, 'code');
  return code === undefined
    ? `${answer.status} with ${inShort(body)}`
    : `${answer.status} ${printable(code, 60)}`;
}

/** The items in a sentence, e.g. `a, b and 3 more`. */
export function listed(items: readonly string[], most = 4): string {
  const rest = items.length - most;
  if (rest > 0) return `${items.slice(0, most).join(', ')} and ${rest} more`;
  return items.length < 2 ? items.join('') : `${items.slice(0, -1).join(', ')} and ${items.at(-1)}`;
}
