import { statusShown } from '../evidence/evidence.ts';
import type { Problem } from '../evidence/finding.ts';
import { firstGone, type InstanceTimeline, isEnd } from '../evidence/instances.ts';
import { listOf, statusOf } from '../transcript/exchange.ts';
import type { Exchange } from '../transcript/records.ts';
import { isAbout } from './instance-status.ts';
import type { Failures, SharedCause } from './stale-reads.ts';

/** From which exchange on what is answered about the instance follows from a problem, if from any. */
type Since = (shown: Exchange, gone: Exchange | undefined) => Exchange | undefined;

/** A 200 may hold an error. */
const isDelete: Since = (shown) =>
  shown.request.method === 'DELETE' && isEnd(statusShown(shown) ?? '') ? shown : undefined;
const isNotFound: Since = (shown) => (statusOf(shown) === 404 ? shown : undefined);

/** What may happen to an instance, by the requirement that says so. */
const EVENTS: readonly (readonly [like: string, title: string, from: Since])[] = [
  ['KEYS-ACCOUNT-001', 'a key of another account reads, stops or destroys the instance', isDelete],
  ['RESTART-INS-001', 'an instance reads 404 after a restart of the target', isNotFound],
  ['DEL-STAYS-001', 'an instance that was destroyed is back', (_shown, gone) => gone],
];

/** The failures that follow from the loss or the return of instances. */
export function lossCauses(failures: Failures, timelines: readonly InstanceTimeline[]): SharedCause[] {
  return EVENTS.flatMap(([like, title, from]) => {
    const since = (failures.get(like) ?? []).flatMap((problem) => {
      const timeline = timelines.find(({ id }) => isOf(problem, id));
      const { shown } = problem;
      if (timeline === undefined || shown?.kind !== 'exchange') return [];
      const first = from(shown, firstGone(timeline));
      return first === undefined ? [] : [{ id: timeline.id, n: first.n }];
    });
    const follow = [...failures].filter(([, found]) =>
      found.every(
        (one) => follows(one) && since.some(({ id, n }) => isOf(one, id) && (one.shown?.n ?? 0) >= n),
      ),
    );
    const ids = new Set([like, ...follow.map(([id]) => id)]);
    return since.length === 0 ? [] : [{ title, like, ids: [...ids] }];
  });
}

/** Whether a problem is in an answer about the instance, or about a list as to the instance. */
function isOf({ shown, expected, actual }: Problem, id: string): boolean {
  if (shown?.kind !== 'exchange') return false;
  return isAbout(shown, id) || (listOf(shown) !== undefined && `${expected} ${actual}`.includes(id));
}

/** Of the answers to a DELETE or a POST, only a 404 follows from the loss. */
function follows({ shown }: Problem): boolean {
  return shown?.kind === 'exchange' && (shown.request.method === 'GET' || statusOf(shown) === 404);
}
