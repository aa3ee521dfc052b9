import type { Evidence } from '../evidence/evidence.ts';
import type { Exchange } from '../transcript/records.ts';
import { eachExchange, type Problem } from '../verdict/finding.ts';
import { answerOf, inShort } from '../verdict/words.ts';
import { isObject, isSuccess, type JsonObject, jsonOf, statusOf } from '../wire/json.ts';
import type { Check } from './check.ts';
import { answersTo } from './conventions.ts';

const scenarios = ['token'];

export const tokenChecks: readonly Check[] = [
  {
    id: 'TOK-200-001',
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      eachExchange(answersTo(evidence, 'token/good'), 'requests for a token with the API key', (exchange) =>
        expecting(exchange, 200),
      ),
  },
  {
    id: 'TOK-FIELD-001',
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      eachExchange(granted(evidence), 'answers with a token', (exchange) => {
        const { access_token: token, token_type: type } = bodyOf(exchange);
        if (typeof token !== 'string' || token === '')
          return { expected: 'access_token, a string', actual: `access_token is ${inShort(token)}` };
        return type === undefined || typeof type === 'string'
          ? undefined
          : { expected: 'token_type, a string where it is there', actual: `token_type is ${inShort(type)}` };
      }),
  },
  {
    id: 'TOK-EXPIRES-001',
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      eachExchange(granted(evidence), 'answers with a token', (exchange) => {
        const { expires_in: seconds } = bodyOf(exchange);
        return typeof seconds === 'number' && Number.isInteger(seconds) && seconds > 0
          ? undefined
          : { expected: 'expires_in, whole seconds above zero', actual: `expires_in is ${inShort(seconds)}` };
      }),
  },
  {
    id: 'TOK-WORKS-001',
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      eachExchange(answersTo(evidence, 'token/use'), 'reads with the access token', (exchange) =>
        expecting(exchange, 200),
      ),
  },
  {
    id: 'TOK-401-001',
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      eachExchange(
        answersTo(evidence, 'token/wrong-key'),
        'requests for a token with a wrong key',
        (exchange) => expecting(exchange, 401),
      ),
  },
];

function expecting(exchange: Exchange, status: number): Problem | undefined {
  return statusOf(exchange) === status ? undefined : { expected: String(status), actual: answerOf(exchange) };
}

function granted(evidence: Evidence): Exchange[] {
  return answersTo(evidence, 'token/good').filter(isSuccess);
}

function bodyOf(exchange: Exchange): JsonObject {
  const body = jsonOf(exchange);
  return isObject(body) ? body : {};
}
