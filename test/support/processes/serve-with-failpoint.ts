import { main } from '../../../src/berth.ts';
import type { Store, Transaction } from '../../../src/orchestrator/model/store.ts';
import { useTimes } from './quick-times.ts';

// A test build of `berth`: it kills itself with SIGKILL when a moment that a message, or its environment, named is reached.

/** Which moment, and at which time that it is reached. */
export interface Failpoint {
  name: string;
  hit: number;
}

let armed: Failpoint = JSON.parse(process.env['BERTH_TEST_FAILPOINT'] ?? '{"name":"","hit":0}');
process.on('message', (message: Failpoint) => {
  armed = message;
  process.send?.('armed');
});
process.channel?.unref();

function reached(name: string): void {
  if (name === armed.name && --armed.hit === 0) process.kill(process.pid, 'SIGKILL');
}

/** Names the moments around the commit of a use case: `stop:before-commit`, `stop:after-commit`. */
function withCommitFailpoints(store: Store): Store {
  return {
    ...store,
    transact: async (body) => {
      let useCase: string | undefined;
      let isStep = false;
      const watched = (tx: Transaction): Transaction => ({
        ...tx,
        work: {
          ...tx.work,
          check: (lease) => {
            isStep = true;
            return tx.work.check(lease);
          },
          put: (work) => {
            if (work.resourceKind === 'instance' && !isStep) useCase = work.kind;
            return tx.work.put(work);
          },
        },
      });
      const result = await store.transact(async (tx) => {
        const made = await body(watched(tx));
        if (useCase !== undefined) reached(`${useCase}:before-commit`);
        return made;
      });
      if (useCase !== undefined) reached(`${useCase}:after-commit`);
      return result;
    },
  };
}

useTimes(process.argv);
await main(process.argv, { failpoint: reached, wrapStore: withCommitFailpoints });
