import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEachExchange, notApplicable, type Problem } from '../../evidence/finding.ts';
import { hasField, isObject, type JsonObject, numberField, parseJson, stringField } from '../../text/json.ts';
import { shortJson } from '../../text/wording.ts';
import { answerOf, isSuccess, jsonOf, requestOf, statusOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import { answersOf, type Check } from '../check.ts';

const scenarios = ['token'];
const A_DAY_S = 86_400;

export const tokenChecks: readonly Check[] = [
  {
    id: 'TOK-200-001',
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      judgeEachExchange(
        answersOf(evidence, 'token/good'),
        'requests for a token with good credentials',
        (exchange) => expecting(exchange, 200),
      ),
  },
  {
    id: 'TOK-FIELD-001',
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      judgeEachExchange(granted(evidence), 'answers with a token', (exchange) => {
        const { access_token: token, token_type: type } = bodyOf(exchange);
        if (typeof token !== 'string' || token === '')
          return { expected: 'access_token, a string', actual: `access_token is ${shortJson(token)}` };
        return type === undefined || type === null || typeof type === 'string'
          ? undefined
          : {
              expected: 'token_type, a string where it is there',
              actual: `token_type is ${shortJson(type)}`,
            };
      }),
  },
  {
    id: 'TOK-EXPIRES-001',
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      judgeEachExchange(granted(evidence), 'answers with a token', (exchange) => {
        const { expires_in: seconds } = bodyOf(exchange);
        return typeof seconds === 'number' && Number.isInteger(seconds) && seconds > 0
          ? undefined
          : {
              expected: 'expires_in, whole seconds above zero',
              actual: `expires_in is ${shortJson(seconds)}`,
            };
      }),
  },
  {
    id: 'TOK-EXPIRES-002',
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      judgeEachExchange(granted(evidence), 'answers with a token', (exchange) => {
        const seconds = numberField(bodyOf(exchange), 'expires_in') ?? 0;
        return seconds <= A_DAY_S
          ? undefined
          : { expected: `expires_in of at most ${A_DAY_S}, a day`, actual: `expires_in is ${seconds}` };
      }),
  },
  { id: 'TOK-EXPIRES-003', level: 'read-only', scenarios, judge: judgeBeforeEnd },
  {
    id: 'TOK-WORKS-001',
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      judgeEachExchange(answersOf(evidence, 'token/use'), 'reads with the access token', useProblem),
  },
  { id: 'TOK-401-001', level: 'read-only', scenarios, judge: judgeBadCredentials },
  {
    id: 'TOK-LOGIN-001',
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      judgeEachExchange(
        answersOf(evidence, 'token/login'),
        'requests for a token with the login',
        (exchange) =>
          stringField(successOf(exchange), 'access_token')
            ? undefined
            : { expected: 'access_token, for the user name and the password', actual: answerOf(exchange) },
      ),
  },
];

function judgeBeforeEnd(evidence: Evidence): Finding {
  const [good] = granted(evidence);
  // After bad credentials an address may have been banned.
  const [bad] = evidence.anySteps('unauthenticated');
  const used = evidence
    .anySteps('token/before-end')
    .filter(({ n, answer }) => n < (bad?.n ?? Number.POSITIVE_INFINITY) && answer?.status !== 429)
    .filter(({ n }) => !isFromBeforeRestart(evidence, n));
  if (used.length === 0)
    return notApplicable(
      'a token that ends within the run',
      `expires_in is ${shortJson(good && bodyOf(good)['expires_in'])}, and the run sent no request shortly before that was over`,
    );
  return judgeEachExchange(used, 'uses of a token shortly before its end', (exchange) =>
    [401, 403].includes(statusOf(exchange) ?? 0)
      ? {
          expected: 'the token is accepted until the time of its expires_in is over',
          actual: answerOf(exchange),
        }
      : undefined,
  );
}

/** Whether the token of the nth request was issued before a restart, which may forget it. */
function isFromBeforeRestart(evidence: Evidence, n: number): boolean {
  const issued = evidence.anySteps('token/good', 'token/renew').findLast((one) => one.n < n)?.n ?? 0;
  return evidence.sent.some((one) => one.step === 'restart/wait' && one.n > issued && one.n < n);
}

function expecting(exchange: Exchange, ...statuses: readonly number[]): Problem | undefined {
  return statuses.includes(statusOf(exchange) ?? 0)
    ? undefined
    : { expected: statuses.join(' or '), actual: answerOf(exchange) };
}

/** For the instance that never existed, it only matters that the token is accepted. */
function useProblem(exchange: Exchange): Problem | undefined {
  if (!exchange.request.path.startsWith('/instances/')) return withPath(exchange, expecting(exchange, 200));
  return [401, 403].includes(statusOf(exchange) ?? 0)
    ? withPath(exchange, { expected: '404', actual: answerOf(exchange) })
    : undefined;
}

function withPath(exchange: Exchange, problem: Problem | undefined): Problem | undefined {
  return problem && { ...problem, actual: `${problem.actual}, to ${requestOf(exchange)}` };
}

/**
 * A wrong key or login must be answered 401 if the target accepts that kind of credential. Otherwise a required field
 * is missing from the body, and 400 is accepted too.
 */
function judgeBadCredentials(evidence: Evidence): Finding {
  const good = answersOf(evidence, 'token/good');
  const takesLogin = good.some(({ request }) => hasField(parseJson(request.body), 'username'));
  const strict = takesLogin ? 'token/wrong-login' : 'token/wrong-key';
  const asked = answersOf(evidence, 'token/wrong-key', 'token/wrong-login', 'token/empty');
  return judgeEachExchange(asked, 'requests for a token with bad credentials', (exchange) => {
    const problem = exchange.step === strict ? expecting(exchange, 401) : expecting(exchange, 400, 401);
    return problem && { ...problem, actual: `${problem.actual}, to ${BAD[exchange.step]}` };
  });
}

const BAD: Readonly<Record<string, string>> = {
  'token/wrong-key': 'an api_key that was never issued',
  'token/wrong-login': 'an unknown username and password',
  'token/empty': '{}',
};

function granted(evidence: Evidence): Exchange[] {
  return answersOf(evidence, 'token/good').filter(isSuccess);
}

function bodyOf(exchange: Exchange): JsonObject {
  const body = jsonOf(exchange);
  return isObject(body) ? body : {};
}
