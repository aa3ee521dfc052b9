import type { FindProblem } from '../../http/operations.ts';
import type { Store } from '../model/store.ts';

/** What readiness depends on. */
export interface ReadinessDeps {
  store: Store;
  /** False from the moment on at which the server drains. */
  isServing: () => boolean;
  writes: { areWritesTaken: boolean };
}

/** Why `/readyz` is 503. */
export function readiness({ store, isServing, writes }: ReadinessDeps): FindProblem {
  return async () => {
    if (!isServing()) return 'draining';
    return store.read.mail.nextDueAt().then(
      () => (writes.areWritesTaken ? undefined : 'the database takes no writes'),
      () => 'the database does not answer',
    );
  };
}
