import type { Evidence } from '../../evidence/evidence.ts';
import {
  type Finding,
  judgeEach,
  judgeEachExchange,
  MissingEvidence,
  refuseTooLong,
} from '../../evidence/finding.ts';
import { type InstanceTimeline, isBefore, isWhileAlive, reads } from '../../evidence/instances.ts';
import { objectsField, stringField } from '../../text/json.ts';
import { duration } from '../../text/wording.ts';
import { answerOf, isSuccess, jsonOf, statusOf } from '../../transcript/exchange.ts';
import type { Check } from '../check.ts';

export const notFoundChecks: readonly Check[] = [
  {
    id: 'INS-404-001',
    level: 'lifecycle',
    scenarios: ['create', 'boot', 'online', 'stop', 'start'],
    judge: judgeNever404,
  },
  {
    id: 'INS-404-002',
    level: 'lifecycle',
    scenarios: ['destroy'],
    judge: (evidence) => {
      evidence.steps('destroy/gone/read');
      return judgeEach(
        evidence.instances.flatMap((timeline) => readsAfterEnd(timeline)),
        'reads of an instance that had read 404 after its destruction',
        ({ status }) =>
          status === '404'
            ? undefined
            : { expected: '404, for good', actual: `404, and then ${status} again` },
        ({ exchange }) => exchange,
      );
    },
  },
  {
    id: 'INS-404-003',
    level: 'read-only',
    scenarios: ['unknown'],
    judge: (evidence) => judgeUnknown(evidence, 'unknown/instance/get'),
  },
  {
    id: 'INS-404-004',
    level: 'read-only',
    scenarios: ['unknown'],
    judge: (evidence) =>
      judgeUnknown(evidence, 'unknown/instance/delete', 'unknown/instance/start', 'unknown/instance/stop'),
  },
  {
    id: 'INS-404-005',
    level: 'lifecycle',
    scenarios: ['destroy'],
    judge: judgeListOmits,
  },
  {
    id: 'INS-404-006',
    level: 'lifecycle',
    scenarios: ['destroy'],
    judge: (evidence) =>
      judgeEachExchange(
        evidence.steps('destroy/gone/start', 'destroy/gone/stop'),
        'starts and stops of an instance that is gone',
        (exchange) =>
          statusOf(exchange) === 404 ? undefined : { expected: '404', actual: answerOf(exchange) },
      ),
  },
];

function judgeNever404(evidence: Evidence): Finding {
  evidence.steps('create/read-at-once');
  return judgeEach(
    evidence.instances.flatMap((timeline) =>
      reads(timeline)
        .filter(({ exchange }) => isWhileAlive(timeline, exchange))
        .map((observation) => ({ timeline, observation })),
    ),
    'reads of an instance between its 201 and its destruction',
    ({ timeline, observation }) => {
      if (observation.status !== '404') return undefined;
      const age = observation.exchange.sentAt - (timeline.created?.endedAt ?? 0);
      return {
        expected: 'the instance: its client takes 404 for DESTROYED, and stops to bill and to look after it',
        actual: `an early 404: ${duration(age)} after its 201, and no DELETE was sent`,
      };
    },
    ({ observation }) => observation.exchange,
  );
}

/** The reads after the first 404 that followed the DELETE. */
function readsAfterEnd(timeline: InstanceTimeline) {
  const first404 = end404(timeline);
  if (first404 === undefined) return [];
  return reads(timeline).filter(({ exchange }) => isBefore(first404, exchange));
}

function end404(timeline: InstanceTimeline) {
  return reads(timeline).find(({ status, exchange }) => status === '404' && !isWhileAlive(timeline, exchange))
    ?.exchange;
}

function judgeUnknown(evidence: Evidence, ...steps: readonly string[]): Finding {
  return judgeEachExchange(
    evidence.steps(...steps),
    'requests for an id that was never given out',
    (exchange) => (statusOf(exchange) === 404 ? undefined : { expected: '404', actual: answerOf(exchange) }),
  );
}

function judgeListOmits(evidence: Evidence): Finding {
  const lists = evidence.instances.flatMap((timeline) => {
    const first404 = end404(timeline);
    if (first404 === undefined) return [];
    return evidence.exchanges
      .filter(({ request }) => request.method === 'GET' && request.path === '/instances')
      .filter((list) => isSuccess(list) && isBefore(first404, list))
      .map((list) => ({ id: timeline.id, list }));
  });
  if (lists.length === 0) refuseTooLong(evidence.exchanges);
  if (lists.length === 0)
    throw new MissingEvidence({ verdict: 'not_tested', reason: 'nothing was listed after a 404' });
  return judgeEach(
    lists,
    'lists after an instance read 404',
    ({ id, list }) => {
      const item = objectsField(jsonOf(list), 'instances').find((instance) => instance['id'] === id);
      const status = stringField(item, 'status');
      return item === undefined || status === 'DESTROYED'
        ? undefined
        : { expected: `${id} is listed no more, or as DESTROYED`, actual: `it is listed as ${status}` };
    },
    ({ list }) => list,
  );
}
