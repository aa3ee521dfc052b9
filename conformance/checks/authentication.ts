import type { Evidence } from '../evidence/evidence.ts';
import { eachExchange, type Finding, notApplicable } from '../verdict/finding.ts';
import { answerOf, requestOf } from '../verdict/words.ts';
import { isSuccess, statusOf } from '../wire/json.ts';
import type { Check } from './check.ts';
import { answered, answersTo, isFromInFront } from './conventions.ts';
import { envelopeProblem } from './errors.ts';

const scenarios = ['unauthenticated'];

export const authenticationChecks: readonly Check[] = [
  refusal('AUTH-401-001', 'requests without a credential', 'unauthenticated/none'),
  refusal('AUTH-401-002', 'requests with a key that was never issued', 'unauthenticated/wrong-key'),
  refusal(
    'AUTH-401-003',
    'requests with the key in another scheme, or with an empty one',
    'unauthenticated/other-scheme',
    'unauthenticated/empty-bearer',
  ),
  refusal(
    'AUTH-401-004',
    'requests with the key cut by a character, or with one more',
    'unauthenticated/cut-key',
    'unauthenticated/longer-key',
  ),
  {
    id: 'AUTH-401-005',
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      eachExchange(
        answered(evidence).filter((exchange) => statusOf(exchange) === 401),
        'answers of 401',
        envelopeProblem,
      ),
  },
  { id: 'AUTH-KEY-001', level: 'read-only', scenarios: ['token', 'catalog', 'list'], judge: judgeKey },
];

function refusal(id: string, what: string, ...steps: readonly string[]): Check {
  return {
    id,
    level: 'read-only',
    scenarios,
    judge: (evidence) =>
      eachExchange(answersTo(evidence, ...steps), what, (exchange) =>
        statusOf(exchange) === 401
          ? undefined
          : { expected: '401', actual: `${answerOf(exchange)}, to ${requestOf(exchange)}` },
      ),
  };
}

/** The run's own key, which its owner says is good. A target may take tokens in its place. */
function judgeKey(evidence: Evidence): Finding {
  const takesToken = evidence.anySteps('token/use').some(isSuccess);
  if (takesToken && evidence.anySteps('token/static-key').some(isKeyRefusal))
    return notApplicable(
      'API keys as bearer credentials',
      'the key itself is refused, and its access token is taken',
    );
  // The clean-up comes after the bad credentials, for which an address may have been banned.
  const withKey = evidence.exchanges.filter(
    (exchange) =>
      exchange.credential === 'api key' &&
      exchange.answer &&
      !exchange.step.startsWith('cleanup/') &&
      !isFromInFront(exchange),
  );
  if (withKey.length === 0 && takesToken)
    return notApplicable('an API key', 'the run signs in with a user name and a password');
  return eachExchange(withKey, 'requests with the API key as bearer credential', (exchange) =>
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
