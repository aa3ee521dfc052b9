import { lawfulPaths } from '../../contract/transitions.ts';
import { missedCaches, type Window } from '../../evidence/caches.ts';
import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEach, notApplicable, refuseTooLong } from '../../evidence/finding.ts';
import {
  FRESH_MS,
  hasGoodCredential,
  type InstanceTimeline,
  isBefore,
  isWhileAlive,
  type Observation,
  reads,
} from '../../evidence/instances.ts';
import { repeatedOf } from '../../evidence/offers.ts';
import { idOf, objectsField, stringField } from '../../text/json.ts';
import { listed, shortJson } from '../../text/wording.ts';
import { isSuccess, jsonOf } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import type { Check } from '../check.ts';

/** From this number of instances on a list may be cut off. */
const SEVERAL = 3;

/** Lists of the account's instances, against what the run knows of its own. */
export const listChecks: readonly Check[] = [
  {
    id: 'INS-LIST-003',
    level: 'lifecycle',
    scenarios: ['create', 'boot', 'online'],
    judge: judgeListed,
  },
  {
    id: 'INS-LIST-004',
    level: 'lifecycle',
    scenarios: ['create', 'boot', 'online'],
    judge: judgeListAgrees,
  },
  {
    id: 'INS-LIST-005',
    level: 'full',
    scenarios: ['race', 'elsewhere', 'elsewhere-end'],
    judge: judgeSeveral,
  },
];

/** A list, and the instances of the run that it must have. */
interface Due {
  list: Exchange;
  ids: readonly string[];
  /** Whether it may have to show several instances of the run, with new and ending ones. */
  ofSeveral: boolean;
}

/** Every list that was answered, with the instances that have lived for ten seconds, up to their destruction. */
function duesOf(evidence: Evidence): Due[] {
  const lists = evidence.exchanges.filter(
    (exchange) =>
      exchange.request.method === 'GET' &&
      /^\/instances(\?region=[^&]*)?$/.test(exchange.request.path) &&
      hasGoodCredential(exchange),
  );
  if (!lists.some(isSuccess)) refuseTooLong(lists);
  const regions = new Map(evidence.instances.map((timeline) => [timeline.id, regionOf(timeline)]));
  return lists.filter(isSuccess).map((list) => {
    const wanted = new URLSearchParams(list.request.path.split('?')[1]).get('region');
    const due = evidence.instances.filter(
      (timeline) =>
        timeline.created !== undefined &&
        isBefore(timeline.created, list) &&
        list.sentAt - timeline.created.endedAt > FRESH_MS &&
        isWhileAlive(timeline, list) &&
        (wanted === null || wanted === regions.get(timeline.id)),
    );
    return { list, ids: due.map(({ id }) => id), ofSeveral: countAt(evidence, list) >= SEVERAL };
  });
}

/** How many instances of the run had been created, and not yet read as gone. */
function countAt({ instances }: Evidence, list: Exchange): number {
  return instances.filter(({ created, observations }) => {
    const isMade = created !== undefined && created.sentAt < list.endedAt;
    return (
      isMade && !observations.some(({ status, exchange }) => status === '404' && isBefore(exchange, list))
    );
  }).length;
}

function regionOf({ observations }: InstanceTimeline): string | undefined {
  return stringField(observations.find(({ instance }) => instance)?.instance, 'region');
}

function idsIn(list: Exchange): string[] {
  return objectsField(jsonOf(list), 'instances').flatMap((instance) => idOf(instance) ?? []);
}

function judgeListed(evidence: Evidence): Finding {
  const few = duesOf(evidence).filter(({ ids, ofSeveral }) => ids.length > 0 && !ofSeveral);
  return judgeEach(few, 'lists while an instance of the run lived', missingProblem, ({ list }) => list);
}

function missingProblem({ list, ids }: Due): { expected: string; actual: string } | undefined {
  const shown = new Set(idsIn(list));
  const missing = ids.filter((id) => !shown.has(id));
  if (missing.length === 0) return undefined;
  return {
    expected: `${listed([...ids])} listed`,
    actual: `${listed(missing)} ${missing.length === 1 ? 'is' : 'are'} not in the list, which has ${shown.size}`,
  };
}

/** A list of several instances has each of them, and once. */
function judgeSeveral(evidence: Evidence): Finding {
  evidence.steps('race/create');
  const several = duesOf(evidence).filter(({ ids, ofSeveral }) => ids.length > 0 && ofSeveral);
  if (several.length === 0)
    return notApplicable(
      `${SEVERAL} instances at the same time`,
      `the run never had ${SEVERAL} instances when it listed them`,
    );
  return judgeEach(
    several,
    `lists of ${SEVERAL} instances or more`,
    (due) => {
      const repeated = repeatedOf(idsIn(due.list));
      return repeated.length === 0
        ? missingProblem(due)
        : { expected: 'each instance once', actual: `${listed(repeated.map((id) => shortJson(id)))} twice` };
    },
    ({ list }) => list,
  );
}

/** Whether a stop, start or DELETE of the instance was in progress between two reads. */
function isActedOn({ starts, stops, deletes }: InstanceTimeline, from: Exchange, to: Exchange): boolean {
  return [...starts, ...stops, ...deletes].some(
    ({ sentAt, endedAt }) => endedAt > from.sentAt && sentAt < to.endedAt,
  );
}

interface Compared {
  listed: Observation;
  read: Observation;
  /** The reads before it in a row that showed other statuses, the latest last. */
  older: readonly Observation[];
}

/** The lists of an instance between two reads that show one status. */
function comparedOf(timeline: InstanceTimeline): Compared[] {
  const gets = reads(timeline);
  return timeline.observations
    .filter(({ source }) => source === 'list')
    .flatMap((listed) => {
      const read = gets.findLast(({ exchange }) => isBefore(exchange, listed.exchange));
      const after = gets.find(({ exchange }) => isBefore(listed.exchange, exchange));
      if (read === undefined || read.status !== after?.status || read.status === '404') return [];
      if (isActedOn(timeline, read.exchange, after.exchange)) return [];
      const earlier = gets.slice(0, gets.indexOf(read));
      const until = earlier.findLastIndex(({ status }) => status !== read.status) + 1;
      const from = earlier.slice(0, until).findLastIndex(({ status }) => status === read.status) + 1;
      return [{ listed, read, older: earlier.slice(from, until) }];
    });
}

/** A list that is ahead of the reads: that these are late is judged elsewhere. */
function isAhead({ listed, read }: Compared): boolean {
  const [inList, inRead] = [listed, read].map(({ instance }) =>
    Date.parse(stringField(instance, 'updated_at') ?? ''),
  );
  return (
    Number(inList) > Number(inRead) && lawfulPaths('instance').get(read.status)?.has(listed.status) === true
  );
}

/** For ten seconds after a change a list may show the status before it. */
function isLate({ listed, older }: Compared): boolean {
  const last = older.at(-1);
  return last?.status === listed.status && listed.exchange.sentAt - last.exchange.endedAt <= FRESH_MS;
}

function judgeListAgrees(evidence: Evidence): Finding {
  const compared = evidence.instances.flatMap(comparedOf);
  if (compared.length === 0) refuseTooLong(evidence.exchanges);
  const finding = judgeEach(
    compared,
    'lists between two reads that agree',
    (each) =>
      each.listed.status === each.read.status || isLate(each) || isAhead(each)
        ? undefined
        : {
            expected: `${each.read.status}, which the reads of it before and after this list show`,
            actual: `the list shows ${each.listed.status}`,
          },
    ({ listed }) => listed.exchange,
  );
  if (finding.verdict !== 'pass') return finding;
  const windows = [
    ...duesOf(evidence).flatMap((due) => windowsOfCreates(evidence, due)),
    ...compared.flatMap(windowOf),
  ];
  return { ...finding, reason: `${finding.reason}; ${missedCaches('the list', windows)}` };
}

/** A copy of the list from the time of the older reads shows their statuses. */
function windowOf({ listed: { exchange }, older }: Compared): Window[] {
  const [first, last] = [older[0], older.at(-1)];
  if (first === undefined || last === undefined) return [];
  if (exchange.sentAt - last.exchange.endedAt <= FRESH_MS) return [];
  return [{ oldFrom: first.exchange.endedAt, oldUntil: last.exchange.sentAt, readsAt: [exchange.sentAt] }];
}

/** A copy of the list from before a create has no such instance. */
function windowsOfCreates({ instances }: Evidence, { list, ids }: Due): Window[] {
  return instances.flatMap(({ id, created }) =>
    created === undefined || !ids.includes(id)
      ? []
      : [{ oldFrom: Number.NEGATIVE_INFINITY, oldUntil: created.sentAt, readsAt: [list.sentAt] }],
  );
}
