import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEach } from '../../evidence/finding.ts';
import { type InstanceTimeline, isBefore, isEnd, type Observation } from '../../evidence/instances.ts';
import { duration } from '../../text/wording.ts';
import { statusOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import type { Check } from '../check.ts';

/** A DELETE that is answered 404 says that the instance is gone. */
export const deleteAnswerChecks: readonly Check[] = [
  { id: 'DEL-404-001', level: 'lifecycle', scenarios: ['destroy'], judge: judgeNotFound },
];

function judgeNotFound(evidence: Evidence): Finding {
  evidence.steps('destroy/delete');
  const deletes = evidence.instances.flatMap((timeline) =>
    timeline.deletes.map((asked) => ({ timeline, asked })),
  );
  return judgeEach(
    deletes,
    'DELETEs of instances of the run',
    ({ timeline, asked }) => {
      const alive = statusOf(asked) === 404 ? seenAliveAfter(timeline, asked) : undefined;
      return alive === undefined
        ? undefined
        : {
            expected: `200 for ${timeline.id}: its client takes 404 for DESTROYED, and looks after it no more`,
            actual: `404, and ${duration(alive.exchange.sentAt - asked.endedAt)} later it reads ${alive.status}`,
            shown: alive.exchange,
          };
    },
    ({ asked }) => asked,
  );
}

/** The last polled read after the DELETE that shows the instance alive. What follows a later DELETE does not count. */
function seenAliveAfter(
  { observations, deletes }: InstanceTimeline,
  asked: Exchange,
): Observation | undefined {
  const next = deletes.find((other) => isBefore(asked, other));
  return observations.findLast(
    ({ exchange, source, status }) =>
      source === 'get' &&
      isBefore(asked, exchange) &&
      (next === undefined || isBefore(exchange, next)) &&
      status !== '404' &&
      !isEnd(status),
  );
}
