import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, isTooLong, judgeEachExchange, notTested } from '../../evidence/finding.ts';
import { objectsField, stringField } from '../../text/json.ts';
import { answerOf, isSuccess, jsonOf, statusOf, successOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import type { Check } from '../check.ts';

const scenarios = ['second-key'];

export const secondKeyChecks: readonly Check[] = [
  {
    id: 'KEYS-SECOND-001',
    level: 'full',
    scenarios,
    judge: (evidence) =>
      judgeEachExchange(
        evidence.steps('second-key'),
        'reads, with one key and with the other in turn',
        (exchange) =>
          [401, 403].includes(statusOf(exchange) ?? 0)
            ? {
                expected: `the ${exchange.credential} is valid, at the same time as the other`,
                actual: answerOf(exchange),
              }
            : undefined,
      ),
  },
  { id: 'KEYS-SECOND-002', level: 'full', scenarios, judge: judgeSame },
];

/** Whether the last list with the first key before this one contains the instance. */
function wasListed({ exchanges }: Evidence, list: Exchange, ids: readonly unknown[]): boolean {
  const before = exchanges.findLast(
    (exchange) => exchange.n < list.n && exchange.request.path === list.request.path && isSuccess(exchange),
  );
  const listed = before === undefined ? [] : objectsField(jsonOf(before), 'instances');
  return listed.some(({ id }) => ids.includes(id));
}

/** A single 404 among several reads is not caused by the key. */
function judgeSame(evidence: Evidence): Finding {
  const first = evidence.steps('second-key/read-with-first').find(isSuccess);
  if (first === undefined) return notTested('the first key did not read the instance');
  const ids = [stringField(successOf(first), 'id'), first.request.path.split('?')[0]?.split('/')[2]];
  const reads = evidence.steps('second-key/read');
  const list = evidence.step('second-key/list');
  const seen = [reads.find(isSuccess) ?? reads[0], wasListed(evidence, list, ids) ? list : undefined].filter(
    (exchange) =>
      exchange !== undefined && ![401, 403].includes(statusOf(exchange) ?? 0) && !isTooLong(exchange),
  );
  if (seen.length === 0) return notTested('the second key was refused');
  return judgeEachExchange(
    seen.filter((exchange) => exchange !== undefined),
    'reads with the second key',
    (exchange) => {
      const shown = [successOf(exchange), ...objectsField(jsonOf(exchange), 'instances')];
      if (shown.some((instance) => ids.includes(stringField(instance, 'id')))) return undefined;
      return {
        expected: `${ids[0]}, which the first key reads: both keys are of the same account`,
        actual: isSuccess(exchange) ? 'it is not there' : answerOf(exchange),
      };
    },
  );
}
