import { type Evidence, requestBetweenReads, statusShown } from '../../evidence/evidence.ts';
import { type Finding, judgeEach, judgeEachExchange, notApplicable } from '../../evidence/finding.ts';
import { answerOf, isSuccess, requestOf, statusOf } from '../../transcript/exchange.ts';
import { answersOf, type Check } from '../check.ts';
import { answeredExchanges, isFromProxy } from '../conventions/conventions.ts';
import { envelopeProblem } from '../conventions/errors.ts';

const scenarios = ['unauthenticated'];

export const authenticationChecks: readonly Check[] = [
  refusal('AUTH-401-001', 'requests without a credential', 'unauthenticated/none'),
  refusal('AUTH-401-002', 'requests with a key that was never issued', 'unauthenticated/wrong-key'),
  refusal(
    'AUTH-401-003',
    'requests with the header `Bearer` and nothing after it',
    'unauthenticated/empty-bearer',
  ),
  {
    id: 'AUTH-401-006',
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      judgeEachExchange(
        answersOf(evidence, ...Object.keys(FORMS)),
        'requests with the good key in another form than `Bearer KEY`',
        (exchange) =>
          statusOf(exchange) === 401
            ? undefined
            : {
                expected: '401',
                actual: `${answerOf(exchange)}, to ${requestOf(exchange)} with ${FORMS[exchange.step]}`,
              },
      ),
  },
  refusal(
    'AUTH-401-004',
    'requests with the key cut by a character, with one more, or in the other letter case',
    'unauthenticated/cut-key',
    'unauthenticated/longer-key',
    'unauthenticated/other-case-key',
  ),
  {
    id: 'AUTH-401-005',
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      judgeEachExchange(
        answeredExchanges(evidence).filter((exchange) => statusOf(exchange) === 401),
        'answers of 401',
        envelopeProblem,
      ),
  },
  { id: 'AUTH-KEY-001', level: 'read-only', scenarios: ['token', 'catalog', 'list'], judge: judgeKey },
];

/** The forms of the header in which the good key is sent, by step. */
const FORMS: Readonly<Record<string, string>> = {
  'unauthenticated/other-scheme/basic': '`Authorization: Basic KEY`',
  'unauthenticated/other-scheme/token': '`Authorization: Token KEY`',
  'unauthenticated/other-scheme/none': '`Authorization: KEY`, without a scheme',
};

function refusal(id: string, what: string, ...steps: readonly string[]): Check {
  return {
    id,
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      judgeEachExchange(answersOf(evidence, ...steps), what, (exchange) =>
        statusOf(exchange) === 401
          ? undefined
          : { expected: '401', actual: `${answerOf(exchange)}, to ${requestOf(exchange)}` },
      ),
  };
}

/** Whether the run's own API key is accepted. A target may require a token instead. */
function judgeKey(evidence: Evidence): Finding {
  const takesToken = evidence.anySteps('token/use').some(isSuccess);
  if (takesToken && evidence.anySteps('token/static-key').some(isKeyRefusal))
    return notApplicable(
      'API keys as bearer credentials',
      'the key itself is refused, and its access token is taken',
    );
  // The clean-up is left out: it follows the bad credentials, for which an address may have been banned.
  const withKey = evidence.exchanges.filter(
    (exchange) =>
      exchange.credential === 'api key' &&
      exchange.answer &&
      !exchange.step.startsWith('cleanup/') &&
      !isFromProxy(exchange),
  );
  if (withKey.length === 0 && takesToken)
    return notApplicable('an API key', 'the run signs in with a user name and a password');
  return judgeEachExchange(withKey, 'requests with the API key as bearer credential', (exchange) =>
    isKeyRefusal(exchange)
      ? {
          expected: 'an answer that does not refuse the key',
          actual: `${answerOf(exchange)}, to ${requestOf(exchange)}`,
        }
      : undefined,
  );
}

function isKeyRefusal(exchange: Parameters<typeof statusOf>[0]): boolean {
  return [401, 403].includes(statusOf(exchange) ?? 0);
}

/** Requests about a live instance with a bad credential. */
export const liveInstanceChecks: readonly Check[] = [
  {
    id: 'AUTH-LIVE-001',
    level: 'lifecycle',
    scenarios: ['online'],
    judge: (evidence) =>
      judgeEachExchange(
        evidence.steps('online/no-credential', 'online/wrong-credential', 'online/wrong-credential-unknown'),
        'reads without a good credential',
        (exchange) =>
          statusOf(exchange) === 401
            ? undefined
            : {
                expected: '401; a 404 would be taken for DESTROYED when a key is lost',
                actual: answerOf(exchange),
              },
      ),
  },
  {
    id: 'AUTH-LIVE-002',
    level: 'lifecycle',
    scenarios: ['stop', 'start', 'destroy'],
    judge: judgeActions,
  },
];

const BAD = ['no-credential', 'wrong-credential'];

/** A request about a live instance without a valid credential is refused and has no effect. */
function judgeActions(evidence: Evidence): Finding {
  evidence.steps('destroy/no-credential');
  const asked = ['stop', 'start', 'destroy'].flatMap((scenario) =>
    BAD.flatMap((step) => requestBetweenReads(evidence, scenario, step) ?? []),
  );
  return judgeEach(
    asked,
    'stops, starts and DELETEs of a live instance without a good credential',
    ({ before, asked: exchange, after }) => {
      if (statusOf(exchange) !== 401) return { expected: '401', actual: answerOf(exchange) };
      return statusShown(before) === statusShown(after)
        ? undefined
        : {
            expected: `still ${statusShown(before)}: it was refused`,
            actual: `it is ${statusShown(after)}`,
            shown: after,
          };
    },
    ({ asked: exchange }) => exchange,
  );
}
