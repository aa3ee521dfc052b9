import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEachExchange, type Problem } from '../../evidence/finding.ts';
import { hasField, isObject, type JsonObject, stringField } from '../../text/json.ts';
import { shortJson } from '../../text/wording.ts';
import { answerOf, jsonOf, requestOf, statusOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { answersOf, type Check } from '../check.ts';
import { answeredExchanges, isFromProxy } from './conventions.ts';

const scenarios = ['unauthenticated', 'unknown'];

export const errorChecks: readonly Check[] = [
  {
    id: 'ERR-ENVELOPE-001',
    level: 'read-only',
    scenarios,
    judge: (evidence) => judgeEachExchange(refusals(evidence), 'error answers', envelopeProblem),
  },
  {
    id: 'ERR-CODE-001',
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      judgeEachExchange(refusalsWith(evidence, 'code'), 'error answers with a code', (exchange) => {
        const code = errorOf(exchange)?.['code'];
        return /^[^\s]{1,100}$/.test(String(code))
          ? undefined
          : {
              expected: 'a code for programs: one word, such as not_found',
              actual: `code ${shortJson(code)}, on the ${statusOf(exchange)} to ${requestOf(exchange)}`,
            };
      }),
  },
  { id: 'ERR-CODE-002', level: 'read-only', scenarios: ['unknown'], judge: judgeStableCodes },
  {
    id: 'ERR-MESSAGE-001',
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      judgeEachExchange(refusalsWith(evidence, 'message'), 'error answers with a message', messageProblem),
  },
  {
    id: 'ERR-ROUTE-001',
    level: 'read-only',
    scenarios: ['unknown'],
    judge: (evidence) =>
      judgeEachExchange(
        answersOf(evidence, 'unknown/route', 'unknown/method'),
        'requests for routes and methods that do not exist',
        (exchange) => statusProblem(exchange, exchange.step === 'unknown/route' ? [404] : [404, 405, 501]),
      ),
  },
  {
    id: 'ERR-ID-001',
    level: 'read-only',
    scenarios: ['unknown'],
    judge: (evidence) =>
      judgeEachExchange(answersOf(evidence, 'unknown/odd-id'), 'reads of ids in odd writing', (exchange) =>
        isFromProxy(exchange) ? undefined : statusProblem(exchange, [404, 400]),
      ),
  },
  {
    id: 'ERR-400-001',
    level: 'read-only',
    scenarios: ['unknown'],
    judge: (evidence) =>
      judgeEachExchange(
        answersOf(evidence, 'unknown/malformed-json'),
        'bodies that are cut off in the middle',
        (exchange) => statusProblem(exchange, [400]),
      ),
  },
  {
    id: 'ERR-400-002',
    level: 'read-only',
    scenarios: ['unknown'],
    judge: (evidence) =>
      judgeEachExchange(answersOf(evidence, 'unknown/content-type'), 'bodies of text/plain', (exchange) =>
        statusProblem(exchange, [400, 415]),
      ),
  },
  {
    id: 'ERR-5XX-001',
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      judgeEachExchange(
        answeredExchanges(evidence).filter((exchange) => !isBadRequest(exchange)),
        'answers',
        (exchange) => {
          const status = statusOf(exchange) ?? 0;
          // An unknown route may answer 501.
          if (status < 500 || status === 501) return undefined;
          return { expected: 'no 5xx', actual: `${answerOf(exchange)}, to ${requestOf(exchange)}` };
        },
      ),
  },
];

/** A bad request has a check of its own for its status, which a 5xx fails. */
function isBadRequest({ step }: Exchange): boolean {
  return BAD_REQUESTS.some((beginning) => step.startsWith(beginning));
}

/** Beginnings of step names. */
const BAD_REQUESTS = ['unknown/', 'refusals/', 'unauthenticated/', 'volumes/invalid/'];

/** Every answer of 400 and above. */
function refusals(evidence: Evidence): Exchange[] {
  return answeredExchanges(evidence).filter(
    (exchange) => (statusOf(exchange) ?? 0) >= 400 && !isFromProxy(exchange),
  );
}

/** The refusals whose error has the field; a missing field is reported once, by the envelope check. */
function refusalsWith(evidence: Evidence, field: string): Exchange[] {
  return refusals(evidence).filter((exchange) => errorOf(exchange)?.[field] !== undefined);
}

function errorOf(exchange: Exchange): JsonObject | undefined {
  const body = jsonOf(exchange);
  const error = isObject(body) ? body['error'] : undefined;
  return isObject(error) ? error : undefined;
}

/** Returns the problem of an answer that is not an Error of the contract. */
export function envelopeProblem(exchange: Exchange): Problem | undefined {
  const fault = envelopeFault(exchange);
  if (fault === undefined) return undefined;
  return {
    expected: '{"error": {"code": "…", "message": "…"}}, and details an object if it is there',
    actual: `${fault}, on the ${statusOf(exchange)} to ${requestOf(exchange)}`,
  };
}

function envelopeFault(exchange: Exchange): string | undefined {
  const error = errorOf(exchange);
  if (error === undefined) {
    const body = exchange.answer?.body ?? '';
    return body === '' ? 'no body' : `a body without an error object: ${shortJson(jsonOf(exchange) ?? body)}`;
  }
  for (const field of ['code', 'message'])
    if (typeof error[field] !== 'string' || error[field] === '')
      return `error.${field} is ${error[field] === undefined ? 'missing' : shortJson(error[field])}`;
  const { details } = error;
  return !hasField(error, 'details') || isObject(details)
    ? undefined
    : `error.details is ${shortJson(details)}`;
}

/** Equivalent requests that got the same status must have the same error code. */
function judgeStableCodes(evidence: Evidence): Finding {
  const first = new Map<string, string>();
  const asked = evidence
    .steps('unknown')
    .filter((exchange) => stringField(errorOf(exchange), 'code') !== undefined);
  return judgeEachExchange(asked, 'refusals, each asked for twice', (exchange) => {
    const { method, path, body } = exchange.request;
    const key = JSON.stringify([method, path, body, statusOf(exchange)]);
    const code = stringField(errorOf(exchange), 'code') ?? '';
    const before = first.get(key) ?? code;
    first.set(key, before);
    return code === before
      ? undefined
      : {
          expected: `code ${before}, as for the same request before`,
          actual: `code ${code}, on the ${statusOf(exchange)} to ${requestOf(exchange)}`,
        };
  });
}

const FOR_MACHINES: readonly { pattern: RegExp; what: string }[] = [
  { pattern: /<\/?(html|body|head|title|p|div|h\d|pre|br|center)\b[^>]*>/i, what: 'HTML' },
  { pattern: /^\s*at .+[:(]\d+/m, what: 'a stack trace' },
  { pattern: /Traceback \(most recent call last\)|^goroutine \d+|\.java:\d+\)/m, what: 'a stack trace' },
];

function messageProblem(exchange: Exchange): Problem | undefined {
  const error = errorOf(exchange);
  const fault = messageFault(String(error?.['message']), error?.['code']);
  if (fault === undefined) return undefined;
  return {
    expected: 'a message for people: a sentence that says what is wrong',
    actual: `${fault}, on the ${statusOf(exchange)} to ${requestOf(exchange)}`,
  };
}

/** Returns why a message is not suitable for people. A missing message is reported by the envelope check. */
export function messageFault(message: string, code: unknown): string | undefined {
  if (message.trim() === '') return 'a message without a word';
  const found = FOR_MACHINES.find(({ pattern }) => pattern.test(message));
  if (found !== undefined) return `a message with ${found.what}: ${shortJson(message)}`;
  const isOneWord = /^[A-Za-z][a-z]*$/.test(message);
  return message === code && !isOneWord
    ? `a message that only repeats the code ${shortJson(code)}`
    : undefined;
}

function statusProblem(exchange: Exchange, allowed: readonly number[]): Problem | undefined {
  if (allowed.includes(statusOf(exchange) ?? 0)) return undefined;
  return {
    expected: allowed.join(' or '),
    actual: `${answerOf(exchange)}, to ${requestOf(exchange)}`,
  };
}
