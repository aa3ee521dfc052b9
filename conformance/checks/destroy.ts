import type { Evidence } from '../evidence/evidence.ts';
import { isEnd } from '../evidence/instance-life.ts';
import type { Exchange } from '../transcript/records.ts';
import { each, eachExchange, type Finding, notTested } from '../verdict/finding.ts';
import { statusOf, successOf, textField } from '../wire/json.ts';
import { unlessReclaimed } from './answered.ts';
import type { Check } from './check.ts';
import { describeAnswer } from './create.ts';

const scenarios = ['destroy'];

export const destroyChecks: readonly Check[] = [
  {
    id: 'DEL-200-001',
    level: 'lifecycle',
    scenarios,
    judge: (evidence) =>
      unlessReclaimed(
        evidence,
        eachExchange(evidence.steps('destroy/delete'), 'DELETEs of a live instance', (exchange) =>
          statusOf(exchange) === 200 && isEnd(shown(exchange))
            ? undefined
            : {
                expected: '200, with the instance DESTROYING or DESTROYED',
                actual: describeAnswer(exchange),
              },
        ),
      ),
  },
  {
    id: 'DEL-GONE-001',
    level: 'lifecycle',
    scenarios,
    judge: judgeGone,
  },
  {
    id: 'DEL-AGAIN-001',
    level: 'lifecycle',
    scenarios,
    judge: (evidence) =>
      eachExchange(
        evidence.steps('destroy/delete-again'),
        'DELETEs of an instance that is being destroyed',
        (exchange) =>
          isIdempotent(exchange, ['DESTROYING', 'DESTROYED'])
            ? undefined
            : { expected: '200 with DESTROYING or DESTROYED, or 404', actual: describeAnswer(exchange) },
      ),
  },
  {
    id: 'DEL-AGAIN-002',
    level: 'lifecycle',
    scenarios,
    judge: (evidence) =>
      eachExchange(
        evidence.steps('destroy/gone/delete'),
        'DELETEs of an instance that is gone',
        (exchange) =>
          isIdempotent(exchange, ['DESTROYED'])
            ? undefined
            : { expected: '404, or 200 with DESTROYED', actual: describeAnswer(exchange) },
      ),
  },
];

const shown = (exchange: Exchange): string => textField(successOf(exchange), 'status') ?? '';

function isIdempotent(exchange: Exchange, statuses: readonly string[]): boolean {
  return statusOf(exchange) === 404 || (statusOf(exchange) === 200 && statuses.includes(shown(exchange)));
}

function judgeGone(evidence: Evidence): Finding {
  const last = evidence.steps('destroy/poll').at(-1);
  const status = last === undefined ? '' : shown(last);
  if (isEnd(status))
    return notTested(
      `it was still ${status} when the run's patience was over (--ready-timeout-s waits longer)`,
    );
  return each(
    [last],
    'destructions',
    (exchange) =>
      exchange !== undefined && statusOf(exchange) === 404
        ? undefined
        : { expected: '404', actual: exchange === undefined ? 'no read' : describeAnswer(exchange) },
    (exchange) => exchange,
  );
}
