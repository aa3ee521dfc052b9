import { lawfulPaths } from '../contract/transitions.ts';
import type { Problem } from '../evidence/finding.ts';
import {
  acceptedDelete,
  type InstanceTimeline,
  isBefore,
  isEnd,
  type Observation,
  reads,
} from '../evidence/instances.ts';
import { isSuccess } from '../transcript/exchange.ts';
import type { Exchange } from '../transcript/records.ts';

/** A read that shows an older status than a read before it. */
export interface StaleRead {
  /** The last read before it that shows another status. */
  before: Observation;
  read: Observation;
  /** A later read with another status. */
  after: Observation;
  /** The read that follows directly: it may be compared with the stale one. */
  next: Observation | undefined;
}

/** The checks of the order of reads, by how well they show the fault. */
const ORDER_CHECKS = ['TRACE-PATH-001', 'TRACE-FINAL-001', 'INS-404-002'];
/** What is destroyed and back at the end of the run is more than a stale read. */
const NEVER_STALE = 'DEL-STAYS-001';

/** A cause that several failures have in common. */
export interface SharedCause {
  title: string;
  /** The ids of the failed requirements, best first. */
  ids: readonly string[];
  /** The requirement whose usual cause it is. */
  like: string;
}

/** The problems of each requirement that failed, by its id. */
export type Failures = ReadonlyMap<string, readonly Problem[]>;

/** The failures that follow from stale reads. None unless a check of the order of reads fails by nothing else. */
export function staleCauses(failures: Failures, timelines: readonly InstanceTimeline[]): SharedCause[] {
  const stale = timelines.flatMap(staleReadsOf);
  const explained = [...failures].flatMap(([id, problems]) =>
    id !== NEVER_STALE && problems.every((problem) => stale.some((one) => explains(one, problem)))
      ? [id]
      : [],
  );
  const leader = ORDER_CHECKS.find((id) => explained.includes(id));
  const [problem] = failures.get(leader ?? '') ?? [];
  const first = problem && stale.find((one) => explains(one, problem));
  if (leader === undefined || first === undefined) return [];
  const path = [first.before, first.read, first.after].map(({ status }) => status).join(', ');
  const title = `GET /instances/{id} goes back to an older status: ${path}`;
  return [{ title, ids: [leader, ...explained.filter((id) => id !== leader)], like: 'TRACE-PATH-001' }];
}

/** Decided by the exchange and by what the check said of it, before anything is added to that for its reader. */
function explains({ read, next }: StaleRead, { expected, actual, shown }: Problem): boolean {
  if (shown === read.exchange) return actual.includes(read.status);
  return shown === next?.exchange && `${expected} ${actual}`.includes(read.status);
}

function staleReadsOf(timeline: InstanceTimeline): StaleRead[] {
  const seen = reads(timeline);
  return seen.flatMap((read) => {
    const before = seen.findLast(
      ({ exchange, status }) => status !== read.status && isBefore(exchange, read.exchange),
    );
    if (before === undefined || !isBackward(timeline, before, read)) return [];
    const later = seen.filter(({ exchange }) => isBefore(read.exchange, exchange));
    const after = later.find(
      ({ exchange, status }) =>
        status !== read.status &&
        (!isGone(before) || (isGone({ status }) && !isAsked(timeline.deletes, read, exchange))),
    );
    return after === undefined ? [] : [{ before, read, after, next: later[0] }];
  });
}

/** Whether the status was shown earlier, and nothing can lead back to it from what was read since. */
function isBackward(
  timeline: InstanceTimeline,
  before: Observation,
  { status, exchange }: Observation,
): boolean {
  const wasShown = timeline.observations.some(
    (earlier) => earlier.status === status && isBefore(earlier.exchange, before.exchange),
  );
  // A start may show the boot again.
  if (!wasShown || status === '404' || isAsked(timeline.starts, before, exchange)) return false;
  if (before.status === '404') {
    const asked = acceptedDelete(timeline);
    return asked !== undefined && isBefore(asked, before.exchange);
  }
  return !ENDED.includes(before.status) && PATHS.get(before.status)?.has(status) === false;
}

const PATHS = lawfulPaths('instance');
/** What follows these is not an older status but another fault. */
const ENDED = ['OFFLINE', 'ERROR'];

const isGone = ({ status }: Pick<Observation, 'status'>): boolean => status === '404' || isEnd(status);

/** Whether one of the requests was sent between two reads, and accepted. */
function isAsked(requests: readonly Exchange[], { exchange: from }: Observation, to: Exchange): boolean {
  return requests.some((asked) => isSuccess(asked) && asked.n > from.n && asked.n < to.n);
}
