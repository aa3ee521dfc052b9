import type { Evidence } from '../evidence/evidence.ts';
import { isInItsLife, pairs, reads } from '../evidence/instance-life.ts';
import { type InstanceTimeline, isBefore, type Sighting } from '../evidence/instance-timeline.ts';
import type { Exchange } from '../transcript/records.ts';
import { each, type Finding, notApplicable, type Problem } from '../verdict/finding.ts';
import { isSuccess, jsonOf, objectsField, textField } from '../wire/json.ts';
import type { Check } from './check.ts';

const scenarios = ['create', 'boot', 'online'];

interface Seen {
  timeline: InstanceTimeline;
  sighting: Sighting;
}

function allSeen(evidence: Evidence): Seen[] {
  return evidence.instances.flatMap((timeline) =>
    timeline.sightings
      .filter(({ instance }) => instance !== undefined)
      .map((sighting) => ({ timeline, sighting })),
  );
}

const exchangeOf = ({ sighting }: Seen): Exchange => sighting.exchange;

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
      each(
        evidence.instances.flatMap((timeline) => listsInItsLife(evidence, timeline)),
        'lists while an instance of the run lived',
        ({ timeline, list }) =>
          itemOf(list, timeline.id) === undefined
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
    id: 'INS-TIME-001',
    level: 'lifecycle',
    scenarios,
    judge: judgeCreatedAt,
  },
  {
    id: 'INS-TIME-002',
    level: 'lifecycle',
    scenarios,
    judge: judgeMonotone,
  },
  {
    id: 'INS-TIME-003',
    level: 'lifecycle',
    scenarios,
    judge: judgeMoved,
  },
  {
    id: 'INS-ERROR-001',
    level: 'lifecycle',
    scenarios,
    judge: (evidence) => {
      const failed = allSeen(evidence).filter(({ sighting }) => sighting.status === 'ERROR');
      if (failed.length === 0)
        return notApplicable('an instance in ERROR', 'no instance of the run came to ERROR');
      const look = ({ sighting }: Seen): Problem | undefined =>
        textField(sighting.instance, 'error')
          ? undefined
          : { expected: 'an `error` text that says what failed', actual: 'status ERROR without one' };
      return each(failed, 'reads of an instance in ERROR', look, exchangeOf);
    },
  },
  {
    id: 'INS-PRICE-001',
    level: 'lifecycle',
    scenarios,
    judge: judgeSpotPrice,
  },
];

function judgeIds(evidence: Evidence): Finding {
  const seen = evidence.instances.flatMap((timeline) =>
    timeline.sightings
      .filter(({ instance }) => instance !== undefined)
      .map((sighting) => ({ timeline, sighting })),
  );
  const entries = new Map<string, Set<number>>();
  for (const { id, entry } of evidence.resources)
    if (id !== undefined) entries.set(id, (entries.get(id) ?? new Set()).add(entry));
  return each(
    seen,
    'reads of instances that the run made',
    ({ timeline, sighting }) => {
      const { id } = timeline;
      const shown = sighting.instance?.['id'];
      if (shown !== id)
        return { expected: `id ${id}, as it was asked for`, actual: `id ${JSON.stringify(shown)}` };
      if ((entries.get(id)?.size ?? 0) > 1)
        return { expected: 'an id of its own for each instance', actual: `${id} was given to several` };
      return undefined;
    },
    exchangeOf,
  );
}

/** Complete lists: without a filter, or with the instance's own region. */
function listsInItsLife(
  evidence: Evidence,
  timeline: InstanceTimeline,
): { timeline: InstanceTimeline; list: Exchange }[] {
  const { created } = timeline;
  if (created === undefined) return [];
  const region = textField(timeline.sightings.find(({ instance }) => instance)?.instance, 'region') ?? '';
  const paths = ['/instances', `/instances?region=${encodeURIComponent(region)}`];
  return evidence.exchanges
    .filter(({ request }) => request.method === 'GET' && paths.includes(request.path))
    .filter((list) => isSuccess(list) && isBefore(created, list) && isInItsLife(timeline, list))
    .map((list) => ({ timeline, list }));
}

function itemOf(list: Exchange, id: string) {
  return objectsField(jsonOf(list), 'instances').find((instance) => instance['id'] === id);
}

/** A list between two reads that show the same status has to show that too; one in three may be a change in between. */
function judgeListAgrees(evidence: Evidence): Finding {
  const compared = evidence.instances.flatMap((timeline) => {
    const gets = reads(timeline);
    return timeline.sightings
      .filter(({ source }) => source === 'list')
      .flatMap((listed) => {
        const before = gets.findLast(({ exchange }) => isBefore(exchange, listed.exchange));
        const after = gets.find(({ exchange }) => isBefore(listed.exchange, exchange));
        const isSame = before !== undefined && before.status === after?.status && before.status !== '404';
        return isSame ? [{ listed, read: before }] : [];
      });
  });
  return each(
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

function judgeCreatedAt(evidence: Evidence): Finding {
  const first = new Map<string, unknown>();
  return each(
    allSeen(evidence),
    'reads of instances that the run made',
    ({ timeline, sighting }) => {
      const created = sighting.instance?.['created_at'];
      if (!first.has(timeline.id)) first.set(timeline.id, created);
      const earlier = first.get(timeline.id);
      if (created !== earlier)
        return {
          expected: `created_at ${String(earlier)}, as before`,
          actual: `created_at ${String(created)}`,
        };
      const updated = textField(sighting.instance, 'updated_at') ?? '';
      return Date.parse(updated) < Date.parse(String(created))
        ? { expected: `updated_at not before created_at ${String(created)}`, actual: `updated_at ${updated}` }
        : undefined;
    },
    exchangeOf,
  );
}

/** The reads that follow one another, with the updated_at of each in milliseconds. */
function updates(evidence: Evidence) {
  return evidence.instances
    .flatMap((timeline) => pairs(reads(timeline)))
    .map(([before, after]) => ({ before, after, earlier: updatedAt(before), later: updatedAt(after) }))
    .filter(({ before, after }) => before.instance !== undefined && after.instance !== undefined);
}

function updatedAt({ instance }: Sighting): number {
  return Date.parse(textField(instance, 'updated_at') ?? '');
}

const iso = (ms: number): string => new Date(ms).toISOString();

function judgeMonotone(evidence: Evidence): Finding {
  return each(
    updates(evidence),
    'pairs of reads that follow one another',
    ({ earlier, later }) =>
      later < earlier
        ? {
            expected: `updated_at not before ${iso(earlier)}, which an earlier read showed`,
            actual: `updated_at ${iso(later)}`,
          }
        : undefined,
    ({ after }) => after.exchange,
  );
}

/** Two changes within one second of a clock that counts seconds share their updated_at lawfully. */
function judgeMoved(evidence: Evidence): Finding {
  const changes = updates(evidence).filter(({ before, after }) => before.status !== after.status);
  const isMute = updates(evidence).every(({ earlier, later }) => earlier === later);
  return each(
    changes,
    'changes of status',
    ({ before, after, earlier, later }) => {
      const isWithinOneSecond = !isMute && later % 1000 === 0;
      return later === earlier && !isWithinOneSecond
        ? {
            expected: `an updated_at of its own for ${after.status}`,
            actual: `${iso(later)}, as when it was ${before.status}`,
          }
        : undefined;
    },
    ({ after }) => after.exchange,
  );
}

function judgeSpotPrice(evidence: Evidence): Finding {
  const spot = new Set(
    evidence.objects.configurations
      .filter(({ value }) => textField(value, 'instance_type') === 'SPOT')
      .map(({ value }) => textField(value, 'id')),
  );
  const seen = allSeen(evidence).filter(({ sighting }) =>
    spot.has(textField(sighting.instance, 'configuration_id')),
  );
  if (seen.length === 0)
    return notApplicable(
      'an instance of a SPOT offer',
      'the run made no instance of a SPOT offer (--offer chooses one)',
    );
  return each(
    seen,
    'reads of an instance of a SPOT offer',
    ({ sighting }) =>
      typeof sighting.instance?.['price_per_hour'] === 'number'
        ? undefined
        : { expected: 'price_per_hour, the current one', actual: 'none' },
    exchangeOf,
  );
}
