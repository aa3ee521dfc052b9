import type { Evidence } from '../evidence/evidence.ts';
import { eachExchange, type Finding, notTested } from '../verdict/finding.ts';
import { isSuccess, jsonOf, objectsField, successOf, textField } from '../wire/json.ts';
import { judgeAnswered } from './answered.ts';
import type { Check } from './check.ts';

const scenarios = ['second-key'];

export const severalKeysChecks: readonly Check[] = [
  {
    id: 'KEYS-SECOND-001',
    level: 'full',
    scenarios,
    judge: (evidence) =>
      judgeAnswered(
        evidence.steps('second-key'),
        'reads, with one key and with the other in turn',
        [200],
        ({ credential }) => `200: the ${credential} is valid at the same time as the other`,
      ),
  },
  { id: 'KEYS-SECOND-002', level: 'full', scenarios, judge: judgeSame },
];

function judgeSame(evidence: Evidence): Finding {
  const first = evidence.steps('second-key/read-with-first').find(isSuccess);
  const id = first === undefined ? undefined : textField(successOf(first), 'id');
  if (id === undefined) return notTested('the first key did not read the instance');
  const seen = evidence
    .steps('second-key')
    .filter(({ credential }) => credential === 'second api key')
    .filter((exchange) => exchange.answer?.status !== 401);
  if (seen.length === 0) return notTested('the second key was refused');
  return eachExchange(seen, 'reads with the second key', (exchange) => {
    const isThere =
      textField(successOf(exchange), 'id') === id ||
      objectsField(jsonOf(exchange), 'instances').some((instance) => instance['id'] === id);
    return isThere
      ? undefined
      : {
          expected: `${id}, which the first key reads: both keys are of the same account`,
          actual: isSuccess(exchange) ? 'it is not there' : `${exchange.answer?.status}`,
        };
  });
}
