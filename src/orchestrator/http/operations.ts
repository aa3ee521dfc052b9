import type { FindProblem } from '../../http/operations.ts';
import type { Store } from '../model/store.ts';

/** What readiness depends on. */
export interface ReadinessDeps {
  store: Store;
  /** False from the moment on at which the server drains. */
  isServing: () => boolean;
  /** Whether the time here is near enough to that of the other servers. */
  isClockInSync: () => boolean;
  writes: { areWritesTaken: boolean };
}

/** Why `/readyz` is 503. */
export function readiness({ store, isServing, isClockInSync, writes }: ReadinessDeps): FindProblem {
  return async () => {
    if (!isServing()) return 'draining';
    if (!isClockInSync()) return "the clock is too far from the database's";
    return store.read.work.backlog().then(
      () => (writes.areWritesTaken ? undefined : 'the store takes no writes'),
      () => 'the store does not answer',
    );
  };
}
