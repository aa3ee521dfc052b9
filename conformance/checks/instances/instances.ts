import type { Evidence } from '../../evidence/evidence.ts';
import {
  type Finding,
  judgeEach,
  judgeEachExchange,
  notApplicable,
  type Problem,
  refuseTooLong,
} from '../../evidence/finding.ts';
import {
  FRESH_MS,
  type InstanceTimeline,
  isBefore,
  isWhileAlive,
  type Observation,
  reads,
} from '../../evidence/instances.ts';
import { objectsField, stringField } from '../../text/json.ts';
import { isSuccess, jsonOf, statusOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import type { Check } from '../check.ts';
import { describeAnswer } from './create.ts';

const scenarios = ['create', 'boot', 'online'];

interface Seen {
  timeline: InstanceTimeline;
  observation: Observation;
}

function allSeen(evidence: Evidence): Seen[] {
  return evidence.instances.flatMap((timeline) =>
    timeline.observations
      .filter(({ instance }) => instance !== undefined)
      .map((observation) => ({ timeline, observation })),
  );
}

const exchangeOf = ({ observation }: Seen): Exchange => observation.exchange;

export const instanceChecks: readonly Check[] = [
  {
    id: 'INS-ID-001',
    level: 'lifecycle',
    scenarios,
    judge: judgeIds,
  },
  {
    id: 'INS-LIST-003',
    level: 'lifecycle',
    scenarios,
    judge: (evidence) =>
      judgeEach(
        evidence.instances.flatMap((timeline) => listsWhileAlive(evidence, timeline)),
        'lists while an instance of the run lived',
        ({ timeline, list }) =>
          itemOf(list, timeline.id) === undefined && ageAt(timeline, list) > FRESH_MS
            ? { expected: `${timeline.id} is listed`, actual: 'it is not in the list' }
            : undefined,
        ({ list }) => list,
      ),
  },
  {
    id: 'INS-LIST-004',
    level: 'lifecycle',
    scenarios,
    judge: judgeListAgrees,
  },
  {
    id: 'INS-ERROR-001',
    level: 'lifecycle',
    scenarios,
    judge: (evidence) => {
      const failed = allSeen(evidence).filter(({ observation }) => observation.status === 'ERROR');
      if (failed.length === 0)
        return notApplicable('an instance in ERROR', 'no instance of the run came to ERROR');
      const problemOf = ({ observation }: Seen): Problem | undefined =>
        stringField(observation.instance, 'error')
          ? undefined
          : { expected: 'an `error` text that says what failed', actual: 'status ERROR without one' };
      return judgeEach(failed, 'reads of an instance in ERROR', problemOf, exchangeOf);
    },
  },
  {
    id: 'INS-PRICE-001',
    level: 'lifecycle',
    scenarios,
    judge: judgeSpotPrice,
  },
  {
    id: 'INS-GET-001',
    level: 'lifecycle',
    scenarios,
    judge: judgeReadable,
  },
  {
    id: 'INS-REGION-001',
    level: 'lifecycle',
    scenarios: ['online', 'destroy'],
    judge: judgeWithoutRegion,
  },
];

function judgeIds(evidence: Evidence): Finding {
  const seen = evidence.instances.flatMap((timeline) =>
    timeline.observations
      .filter(({ instance }) => instance !== undefined)
      .map((observation) => ({ timeline, observation })),
  );
  const entries = new Map<string, Set<number>>();
  for (const { id, entry } of evidence.resources)
    if (id !== undefined) entries.set(id, (entries.get(id) ?? new Set()).add(entry));
  return judgeEach(
    seen,
    'reads of instances that the run made',
    ({ timeline, observation }) => {
      const { id } = timeline;
      const shown = observation.instance?.['id'];
      if (shown !== id)
        return { expected: `id ${id}, as it was asked for`, actual: `id ${JSON.stringify(shown)}` };
      if ((entries.get(id)?.size ?? 0) > 1)
        return { expected: 'an id of its own for each instance', actual: `${id} was given to several` };
      return undefined;
    },
    exchangeOf,
  );
}

/** The lists that must contain the instance: unfiltered, or filtered by its region. */
function listsWhileAlive(
  evidence: Evidence,
  timeline: InstanceTimeline,
): { timeline: InstanceTimeline; list: Exchange }[] {
  const { created } = timeline;
  if (created === undefined) return [];
  const region =
    stringField(timeline.observations.find(({ instance }) => instance)?.instance, 'region') ?? '';
  const paths = ['/instances', `/instances?region=${encodeURIComponent(region)}`];
  const lists = evidence.exchanges.filter(
    ({ request }) => request.method === 'GET' && paths.includes(request.path),
  );
  if (!lists.some(isSuccess)) refuseTooLong(lists);
  return lists
    .filter((list) => isSuccess(list) && isBefore(created, list) && isWhileAlive(timeline, list))
    .map((list) => ({ timeline, list }));
}

function ageAt({ created }: InstanceTimeline, { sentAt }: Exchange): number {
  return sentAt - (created?.endedAt ?? 0);
}

function itemOf(list: Exchange, id: string) {
  return objectsField(jsonOf(list), 'instances').find((instance) => instance['id'] === id);
}

/** Whether a stop, start or DELETE of the instance was in progress between two reads. */
function isActedOn({ starts, stops, deletes }: InstanceTimeline, from: Exchange, to: Exchange): boolean {
  return [...starts, ...stops, ...deletes].some(
    ({ sentAt, endedAt }) => endedAt > from.sentAt && sentAt < to.endedAt,
  );
}

/**
 * A list between two reads with the same status must show that status too; one deviation in three may be a change in
 * between.
 */
function judgeListAgrees(evidence: Evidence): Finding {
  const compared = evidence.instances.flatMap((timeline) => {
    const gets = reads(timeline);
    return timeline.observations
      .filter(({ source }) => source === 'list')
      .flatMap((listed) => {
        const before = gets.findLast(({ exchange }) => isBefore(exchange, listed.exchange));
        const after = gets.find(({ exchange }) => isBefore(listed.exchange, exchange));
        if (before === undefined || before.status !== after?.status || before.status === '404') return [];
        return isActedOn(timeline, before.exchange, after.exchange) ? [] : [{ listed, read: before }];
      });
  });
  if (compared.length === 0) refuseTooLong(evidence.exchanges);
  return judgeEach(
    compared,
    'lists between two reads that agree',
    ({ listed, read }) =>
      listed.status === read.status
        ? undefined
        : {
            expected: `${read.status}, which the reads of it before and after this list show`,
            actual: `the list shows ${listed.status}`,
          },
    ({ listed }) => listed.exchange,
  );
}

/** One failed read in twenty may be due to a restart. 404 and 429 are judged elsewhere. */
function judgeReadable(evidence: Evidence): Finding {
  const polled = evidence.instances.flatMap((timeline) =>
    evidence.exchanges.filter(
      (exchange) => isReadOf(exchange, timeline.id) && isWhileAlive(timeline, exchange),
    ),
  );
  const finding = judgeEachExchange(polled, 'reads of an instance in its life', (exchange) =>
    [200, 404, 429].includes(statusOf(exchange) ?? 0)
      ? undefined
      : { expected: '200, with the instance', actual: describeAnswer(exchange) },
  );
  if (finding.verdict !== 'fail' || finding.problems.length > polled.length / 20) return finding;
  return {
    verdict: 'pass',
    reason: `${polled.length - finding.problems.length} of ${polled.length} reads of an instance in its life were answered with it`,
    shown: finding.problems.flatMap(({ shown }) => shown ?? []),
  };
}

function isReadOf({ request, failure, ...exchange }: Exchange, id: string): boolean {
  const [path] = request.path.split('?');
  const isRead = request.method === 'GET' && path === `/instances/${encodeURIComponent(id)}`;
  return (
    isRead && failure === undefined && exchange.credential !== 'none' && exchange.credential !== 'altered'
  );
}

/** A request without the region is answered like the neighbouring ones with it. */
function judgeWithoutRegion(evidence: Evidence): Finding {
  evidence.steps('online/without-region');
  const twins = [
    ['online/without-region', 'online/before-start'],
    ['destroy/delete-without-region', 'destroy/delete-again'],
  ].flatMap(([without = '', withIt = '']) => {
    const [exchange] = evidence.anySteps(without);
    const [twin] = evidence.anySteps(withIt);
    const isClear = [exchange, twin].every((one) => one !== undefined && (statusOf(one) ?? 500) < 500);
    return exchange !== undefined && twin !== undefined && isClear ? [{ exchange, twin }] : [];
  });
  return judgeEach(
    twins,
    'requests without the region',
    ({ exchange, twin }) => {
      const isGoneMeanwhile = exchange.request.method === 'DELETE' && statusOf(exchange) === 404;
      return statusOf(exchange) === statusOf(twin) || isGoneMeanwhile
        ? undefined
        : { expected: `${describeAnswer(twin)}, as with it`, actual: describeAnswer(exchange) };
    },
    ({ exchange }) => exchange,
  );
}

function judgeSpotPrice(evidence: Evidence): Finding {
  const spot = new Set(
    evidence.objects.configurations
      .filter(({ value }) => stringField(value, 'instance_type') === 'SPOT')
      .map(({ value }) => stringField(value, 'id')),
  );
  const seen = allSeen(evidence).filter(({ observation }) =>
    spot.has(stringField(observation.instance, 'configuration_id')),
  );
  if (seen.length === 0)
    return notApplicable(
      'an instance of a SPOT offer',
      'the run made no instance of a SPOT offer (--offer chooses one)',
    );
  return judgeEach(
    seen,
    'reads of an instance of a SPOT offer',
    ({ observation }) =>
      typeof observation.instance?.['price_per_hour'] === 'number'
        ? undefined
        : { expected: 'price_per_hour, the current one', actual: 'none' },
    exchangeOf,
  );
}
