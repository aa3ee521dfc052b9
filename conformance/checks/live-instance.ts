import type { Evidence } from '../evidence/evidence.ts';
import { sandwichOf, statusShown } from '../evidence/sandwich.ts';
import { each, eachExchange, type Finding } from '../verdict/finding.ts';
import { statusOf } from '../wire/json.ts';
import type { Check } from './check.ts';
import { describeAnswer } from './create.ts';

/** What a bad credential reads of an instance that lives. */
export const liveInstanceChecks: readonly Check[] = [
  {
    id: 'AUTH-LIVE-001',
    level: 'lifecycle',
    scenarios: ['online'],
    judge: (evidence) =>
      eachExchange(
        evidence.steps('online/no-credential', 'online/wrong-credential', 'online/wrong-credential-unknown'),
        'reads without a good credential',
        (exchange) =>
          statusOf(exchange) === 401
            ? undefined
            : {
                expected: '401; a 404 would be taken for DESTROYED when a key is lost',
                actual: describeAnswer(exchange),
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

/** What is asked of a live instance without a good credential is refused, and is not done all the same. */
function judgeActions(evidence: Evidence): Finding {
  evidence.steps('destroy/no-credential');
  const asked = ['stop', 'start', 'destroy'].flatMap((scenario) =>
    BAD.flatMap((step) => sandwichOf(evidence, scenario, step) ?? []),
  );
  return each(
    asked,
    'stops, starts and DELETEs of a live instance without a good credential',
    ({ before, asked: exchange, after }) => {
      if (statusOf(exchange) !== 401) return { expected: '401', actual: describeAnswer(exchange) };
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
