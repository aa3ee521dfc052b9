import { lawfulPaths } from '../../contract/transitions.ts';
import { missedCaches, type Window } from '../../evidence/caches.ts';
import type { Evidence } from '../../evidence/evidence.ts';
import { type Finding, judgeEach, type Problem } from '../../evidence/finding.ts';
import {
  acceptedDelete,
  FRESH_MS,
  type InstanceTimeline,
  isBefore,
  isEnd,
  type Observation,
  pairs,
  reads,
} from '../../evidence/instances.ts';
import { offerTypes } from '../../evidence/offers.ts';
import { stringField } from '../../text/json.ts';
import { duration } from '../../text/wording.ts';
import { isSuccess } from '../../transcript/exchange.ts';
import type { Exchange } from '../../transcript/records.ts';
import type { Check } from '../check.ts';

const TERMINAL = ['OFFLINE', 'ERROR', 'DESTROYED', '404'];

const scenarios = ['create', 'boot', 'online', 'stop', 'start', 'destroy'];

interface Step {
  timeline: InstanceTimeline;
  before: Observation;
  after: Observation;
}

export const traceChecks: readonly Check[] = [
  { id: 'TRACE-PATH-001', level: 'lifecycle', scenarios, judge: judgePaths },
  { id: 'TRACE-FINAL-001', level: 'lifecycle', scenarios, judge: judgeFinal },
  { id: 'TRACE-CAUSE-001', level: 'lifecycle', scenarios, judge: judgeCauses },
  { id: 'TRACE-FRESH-001', level: 'lifecycle', scenarios, judge: judgeEffect },
  { id: 'TRACE-FRESH-002', level: 'lifecycle', scenarios, judge: judgeDelay },
];

/**
 * Pairs of consecutive observations that start with a read: a replica may briefly lag behind the answer to a stop or a
 * DELETE. Another check judges lists.
 */
function steps(evidence: Evidence): Step[] {
  return evidence.instances.flatMap((timeline) => {
    const seen = timeline.observations.filter(({ source }) => source !== 'list');
    return seen.flatMap((after, index) => {
      const earlier = seen
        .slice(0, index)
        .filter(({ source, exchange }) => source === 'get' && isBefore(exchange, after.exchange));
      const last = earlier.at(-1);
      // Several if they were sent at the same moment.
      return earlier
        .filter(({ exchange }) => last !== undefined && !isBefore(exchange, last.exchange))
        .map((before) => ({ timeline, before, after }));
    });
  });
}

function eachStep(
  items: readonly Step[],
  what: string,
  problemOf: (step: Step) => Problem | undefined,
): Finding {
  return judgeEach(items, what, problemOf, ({ after }) => after.exchange);
}

function judgePaths(evidence: Evidence): Finding {
  const lawful = lawfulPaths('instance');
  const live = steps(evidence).filter(
    ({ before, after }) => !TERMINAL.includes(before.status) && after.status !== '404',
  );
  return eachStep(live, 'reads that follow one another', ({ timeline, before, after }) =>
    before.status === after.status ||
    lawful.get(before.status)?.has(after.status) === true ||
    isBootAfterStart(timeline, before, after)
      ? undefined
      : {
          expected: `what can follow ${before.status}: ${[...(lawful.get(before.status) ?? [])].join(', ') || 'nothing, since that is no status of the contract'}`,
          actual: `${before.status}, and ${after.status} ${duration(after.exchange.endedAt - before.exchange.endedAt)} later, of ${timeline.id}`,
        },
  );
}

/** A start may look like a boot: the contract does not show transitions other than those of its table. */
function isBootAfterStart({ starts }: InstanceTimeline, before: Observation, after: Observation): boolean {
  const isAsked = starts.some((start) => isSuccess(start) && start.sentAt < after.exchange.endedAt);
  return before.status === 'STOPPED' && after.status === 'PROVISIONING' && isAsked;
}

/** A final status stays; only a DELETE leads on from OFFLINE or ERROR. */
function judgeFinal(evidence: Evidence): Finding {
  const after = steps(evidence).filter(
    ({ timeline, before }) =>
      TERMINAL.includes(before.status) && (before.status !== '404' || isGone(timeline, before)),
  );
  return eachStep(after, 'reads after a terminal status', ({ timeline, before, after: now }) => {
    const allowed = ['DESTROYED', '404'];
    const isAsked = acceptedDelete(timeline) !== undefined && ['OFFLINE', 'ERROR'].includes(before.status);
    const isSame = now.status === before.status && before.status !== '404';
    return isSame || allowed.includes(now.status) || (isAsked && now.status === 'DESTROYING')
      ? undefined
      : {
          expected: `${before.status} is terminal`,
          actual: `${before.status}, and ${now.status} ${duration(now.exchange.endedAt - before.exchange.endedAt)} later`,
        };
  });
}

/** A 404 before the DELETE is reported by another check. */
function isGone(timeline: InstanceTimeline, { exchange }: Observation): boolean {
  const asked = acceptedDelete(timeline);
  return asked !== undefined && isBefore(asked, exchange);
}

/** Every status must have a cause in the contract's table. */
function judgeCauses(evidence: Evidence): Finding {
  const typeOf = offerTypes(evidence);
  const ofInterest = steps(evidence).filter(({ before }) => !TERMINAL.includes(before.status));
  return eachStep(ofInterest, 'reads that follow one another', ({ timeline, before, after }) => {
    const isSpot = typeOf(timeline) === 'SPOT';
    const asked = (of: readonly Exchange[]): boolean =>
      of.some(({ sentAt }) => sentAt < after.exchange.endedAt);
    if (isEnd(after.status) && !isEnd(before.status) && !isSpot && !asked(timeline.deletes))
      return { expected: `${before.status}: its destruction was not requested`, actual: after.status };
    const isOffAndOn = isOff(before.status) && after.status === 'ONLINE';
    const since = isOffAndOn ? stoppedAt(timeline, after.exchange) : 0;
    if (isCycling(evidence, timeline, after.exchange, since)) return undefined;
    if (isOff(after.status) && !isOff(before.status) && !asked(timeline.stops.filter(isSuccess)))
      return { expected: `${before.status}: no stop was requested`, actual: after.status };
    const starts = timeline.starts.filter((start) => isSuccess(start) && start.endedAt >= since);
    if (isOffAndOn && !asked(starts))
      return { expected: `${before.status}: no start was requested`, actual: after.status };
    return undefined;
  });
}

/** When the last accepted stop was requested; 0 without one. */
function stoppedAt({ stops }: InstanceTimeline, until: Exchange): number {
  return stops.findLast((asked) => isSuccess(asked) && isBefore(asked, until))?.sentAt ?? 0;
}

const isOff = (status: string): boolean => status === 'STOPPING' || status === 'STOPPED';

const ATTACHMENT = /^\/volumes(\/[^/]+\/(attach|detach))?$/;
/** How long after an attach the stop-attach-start cycle may be visible. */
const CYCLE_MS = 15 * 60_000;

/**
 * Whether a volume was attached or detached shortly before, and not before `since`, so that the states of a
 * stop-attach-start cycle are lawful.
 */
function isCycling(evidence: Evidence, { id }: InstanceTimeline, until: Exchange, since: number): boolean {
  return evidence.exchanges.some((exchange) => {
    const { request, sentAt } = exchange;
    const isAttachment = request.method === 'POST' && ATTACHMENT.test(request.path) && isSuccess(exchange);
    const isOfIt = request.body?.includes(id) ?? request.path.endsWith('/detach');
    const isRecent = sentAt >= since && until.sentAt - sentAt < CYCLE_MS;
    return isAttachment && isOfIt && isRecent && sentAt < until.endedAt;
  });
}

/** A read after an accepted request. */
interface Looked {
  timeline: InstanceTimeline;
  asked: Exchange;
  /** The statuses that it may show for seconds only. */
  stale: readonly string[];
  what: string;
  observation: Observation;
}

/** An accepted request is visible in reads within seconds. */
function judgeEffect(evidence: Evidence): Finding {
  const looked = evidence.instances.flatMap((timeline) => {
    const stops = timeline.stops
      .filter(isSuccess)
      .map((asked) => ({ asked, stale: ['ONLINE'], what: 'stop' }));
    const deletes = timeline.deletes.filter(isSuccess).map((asked) => ({
      asked,
      stale: ['PROVISIONING', 'ONLINE', 'STOPPING', 'STOPPED'],
      what: 'DELETE',
    }));
    return [...stops, ...deletes].flatMap(({ asked, stale, what }) => {
      const next = [...timeline.starts, ...timeline.deletes].find((other) => isBefore(asked, other));
      return reads(timeline)
        .filter(({ exchange }) => isBefore(asked, exchange) && (what === 'DELETE' || isUntil(exchange, next)))
        .map((observation): Looked => ({ timeline, asked, stale, what, observation }));
    });
  });
  const finding = judgeEach(
    looked,
    'reads after an accepted stop or DELETE',
    ({ asked, stale, what, observation }) => {
      const age = observation.exchange.sentAt - asked.endedAt;
      return stale.includes(observation.status) && age > FRESH_MS
        ? {
            expected: `the effect of the ${what} within ${duration(FRESH_MS)}`,
            actual: `still ${observation.status} after ${duration(age)}`,
          }
        : undefined;
    },
    ({ observation }) => observation.exchange,
  );
  if (finding.verdict !== 'pass') return finding;
  const byRequest = new Map(looked.map((each) => [each.asked, windowOf(evidence, each)]));
  return { ...finding, reason: `${finding.reason}; ${missedCaches('the read', [...byRequest.values()])}` };
}

/** A read that shows what was before is waited on, so that it is seen with the first poll after ten seconds. */
function windowOf({ run }: Evidence, { timeline, asked, what }: Looked): Window {
  const earlier = reads(timeline).filter(({ exchange }) => isBefore(exchange, asked));
  const other = what === 'stop' ? earlier.findLast(({ status }) => status !== 'ONLINE') : undefined;
  return {
    oldFrom: other?.exchange.endedAt ?? Number.NEGATIVE_INFINITY,
    oldUntil: asked.sentAt,
    readsAt: [asked.endedAt + FRESH_MS + run.settings.pollIntervalMs],
  };
}

function isUntil(exchange: Exchange, next: Exchange | undefined): boolean {
  return next === undefined || isBefore(exchange, next);
}

/** A read shows the old status long after the time of the change, as given by the new `updated_at`. */
function judgeDelay(evidence: Evidence): Finding {
  const changes = evidence.instances
    .flatMap((timeline) => pairs(reads(timeline)).map(([before, after]) => ({ timeline, before, after })))
    .filter(({ before, after }) => before.status !== after.status && !TERMINAL.includes(before.status))
    .filter(({ before, after }) => updatedAt(after) > updatedAt(before));
  return eachStep(changes, 'changes of status', ({ timeline, before, after }) => {
    const lateMs = Date.parse(before.exchange.wall) + skewMs(timeline) - updatedAt(after);
    return lateMs > FRESH_MS
      ? {
          expected: `${after.status} is read within ${duration(FRESH_MS)} of the change`,
          actual: `by its updated_at it had changed ${duration(lateMs)} before a read that still showed ${before.status}`,
        }
      : undefined;
  });
}

function updatedAt({ instance }: Observation): number {
  return Date.parse(stringField(instance, 'updated_at') ?? '');
}

/** How far the target's clock is ahead, by the Date header of the create's answer or by created_at. */
function skewMs({ created, observations }: InstanceTimeline): number {
  if (created === undefined) return 0;
  const shown = created.answer?.headers['date'] ?? stringField(observations[0]?.instance, 'created_at') ?? '';
  const at = Date.parse(shown);
  return Number.isNaN(at) ? 0 : at - Date.parse(created.wall);
}
