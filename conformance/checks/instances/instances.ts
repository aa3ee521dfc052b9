import type { Evidence } from '../../evidence/evidence.ts';
import {
  type Finding,
  judgeEach,
  judgeEachExchange,
  notApplicable,
  type Problem,
} from '../../evidence/finding.ts';
import {
  hasGoodCredential,
  type InstanceTimeline,
  isWhileAlive,
  type Observation,
} from '../../evidence/instances.ts';
import { stringField } from '../../text/json.ts';
import { answerOf, statusOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import type { Check } from '../check.ts';

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
      : { expected: '200, with the instance', actual: answerOf(exchange) },
  );
  if (finding.verdict !== 'fail' || finding.problems.length > polled.length / 20) return finding;
  return {
    verdict: 'pass',
    reason: `${polled.length - finding.problems.length} of ${polled.length} reads of an instance in its life were answered with it`,
    shown: finding.problems.flatMap(({ shown }) => shown ?? []),
  };
}

function isReadOf(exchange: Exchange, id: string): boolean {
  const { request, failure } = exchange;
  const [path] = request.path.split('?');
  const isRead = request.method === 'GET' && path === `/instances/${encodeURIComponent(id)}`;
  return isRead && failure === undefined && hasGoodCredential(exchange);
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
        : { expected: `${answerOf(twin)}, as with it`, actual: answerOf(exchange) };
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
