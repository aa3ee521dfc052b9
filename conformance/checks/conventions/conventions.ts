import type { Evidence } from '../../evidence/evidence.ts';
import {
  type Finding,
  isTooLong,
  judgeEachExchange,
  notApplicable,
  notTested,
} from '../../evidence/finding.ts';
import { isObject } from '../../text/json.ts';
import { isLoopback } from '../../text/loopback.ts';
import { shortJson } from '../../text/wording.ts';
import { answerOf, isSuccess, jsonOf, requestOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import type { Check } from '../check.ts';

/** The scenarios of every run. */
const scenarios = ['catalog', 'list', 'unauthenticated', 'unknown'];

/** Every answered exchange, including those that were retried. */
export function answeredExchanges(evidence: Evidence): Exchange[] {
  return evidence.sent.filter(({ answer }) => answer !== undefined);
}

const FROM_A_FIREWALL = [403, 414];

/**
 * Whether a proxy or firewall in front of the target refused an unusual id (quotes, a thousand characters), so that
 * the answer is not the target's own.
 */
export function isFromProxy({ step, answer }: Exchange): boolean {
  return step === 'unknown/odd-id' && FROM_A_FIREWALL.includes(answer?.status ?? 0);
}

export const conventionChecks: readonly Check[] = [
  { id: 'WIRE-JSON-001', level: 'read-only', scenarios, judge: judgeContentType },
  { id: 'WIRE-BODY-001', level: 'read-only', scenarios, judge: judgeBodies },
  { id: 'WIRE-HTTPS-001', level: 'read-only', scenarios: ['catalog'], judge: judgeHttps },
  { id: 'WIRE-VERSION-001', level: 'read-only', scenarios: ['catalog'], judge: judgeVersion },
  { id: 'WIRE-REACH-001', level: 'read-only', scenarios, judge: judgeReach },
  { id: 'WIRE-STATUS-001', level: 'read-only', scenarios, judge: judgeEmbeddedErrors },
];

function judgeContentType(evidence: Evidence): Finding {
  const own = answeredExchanges(evidence).filter((exchange) => !isFromProxy(exchange));
  return judgeEachExchange(own, 'answers', (exchange) => {
    const { answer } = exchange;
    if (answer === undefined || answer.body === '') return undefined;
    if (answer.status === 204)
      return {
        expected: '204 without a body',
        actual: `204 with ${shortJson(answer.body)}, to ${requestOf(exchange)}`,
      };
    const type = answer.headers['content-type'];
    if (isJsonType(type)) return undefined;
    return {
      expected: 'content-type: application/json',
      actual: `content-type: ${type ?? '(absent)'} on the ${answer.status} to ${requestOf(exchange)}`,
    };
  });
}

function isJsonType(header: string | undefined): boolean {
  return /^application\/json\s*(;|$)/i.test(header?.trim() ?? '');
}

function judgeBodies(evidence: Evidence): Finding {
  const withBody = answeredExchanges(evidence).filter(
    (exchange) => exchange.answer?.body !== '' && !isFromProxy(exchange),
  );
  return judgeEachExchange(withBody, 'bodies', (exchange) => {
    const body = jsonOf(exchange);
    const isMeantToBeJson = isSuccess(exchange) || isJsonType(exchange.answer?.headers['content-type']);
    if (body === undefined && isMeantToBeJson)
      return { expected: 'JSON', actual: `${answerOf(exchange)}, to ${requestOf(exchange)}` };
    if (isSuccess(exchange) && !isObject(body))
      return { expected: 'a JSON object', actual: `${answerOf(exchange)}, to ${requestOf(exchange)}` };
    return undefined;
  });
}

function judgeHttps(evidence: Evidence): Finding {
  const { protocol, hostname } = new URL(evidence.run.baseUrl);
  const some = answeredExchanges(evidence);
  if (some.length === 0) return notTested('nothing was answered');
  if (protocol === 'https:')
    return {
      verdict: 'pass',
      reason: `${some.length} answers came over verified TLS`,
      shown: some.slice(0, 1),
    };
  if (isLoopback(hostname))
    return notApplicable('a public address', `${hostname} is this machine: nothing is on the way to it`);
  const problem = { expected: 'https://', actual: `${evidence.run.baseUrl}: API keys travel in the clear` };
  return judgeEachExchange(some.slice(0, 1), 'base URLs', () => problem);
}

function judgeVersion(evidence: Evidence): Finding {
  const { pathname } = new URL(evidence.run.baseUrl);
  return judgeEachExchange(evidence.steps('catalog/configurations').slice(0, 1), 'base URLs', () =>
    pathname.split('/').includes('v1')
      ? undefined
      : { expected: 'a base URL with /v1 in its path', actual: `its path is ${pathname}` },
  );
}

function judgeReach(evidence: Evidence): Finding {
  if (answeredExchanges(evidence).length === 0) return notTested('nothing was answered');
  const asked = evidence.exchanges.filter(
    (exchange) => exchange.failure?.kind !== 'interrupted' && !isTooLong(exchange),
  );
  return judgeEachExchange(asked, 'requests', (exchange) => {
    if (exchange.failure === undefined) return undefined;
    const tries = evidence.sent.filter((other) => isRepetition(other, exchange)).length + 1;
    return {
      expected: 'an HTTP answer',
      actual: `none to ${requestOf(exchange)}${tries > 1 ? `, tried ${tries} times` : ''}: ${exchange.failure.message}`,
    };
  });
}

/** Whether `other` is the previous attempt at the same request. */
function isRepetition(other: Exchange, { n, step, request }: Exchange): boolean {
  return (
    other.superseded === true &&
    other.n < n &&
    n - other.n < 3 &&
    other.step === step &&
    other.request.path === request.path
  );
}

function judgeEmbeddedErrors(evidence: Evidence): Finding {
  return judgeEachExchange(answeredExchanges(evidence).filter(isSuccess), 'answers of 2xx', (exchange) => {
    const body = jsonOf(exchange);
    if (!isObject(body) || !isObject(body['error'])) return undefined;
    return {
      expected: 'the status of the error itself, such as 400, 404 or 409',
      actual: `${exchange.answer?.status} to ${requestOf(exchange)} with an error in its body: ${shortJson(body['error'])}`,
    };
  });
}
