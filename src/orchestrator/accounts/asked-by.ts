import type { RequestedBy } from '../model/history.ts';
import type { Store, Transaction } from '../model/store.ts';

/** The store with transactions that add `by` to each history event that is not a step. */
export function askedBy(store: Store, by: RequestedBy): Store {
  const transact: Store['transact'] = (body) =>
    store.transact((tx) => {
      const { history } = tx;
      const named: Transaction['history'] = {
        ...history,
        moved: (event) => history.moved({ ...event, by }),
        asked: (event) => history.asked({ ...event, by }),
      };
      return body({ ...tx, history: named });
    });
  return { ...store, transact };
}
