import { expect, it } from 'vitest';
import { runningDeployment } from '../../../test/support/rows/marketplace-rows.ts';
import { pauseDeployment } from './lifecycle.ts';
import { caller, openMarket, outcomeOf, read } from './market.fixture.ts';

const COUNT = 1_000;

it('a thousand requests that wait for an absent worker are 502, and leave no watcher, no timer and no intent [waiting-requests-end]', async () => {
  const { deps, clock, store, worker, close } = await openMarket();
  worker.stop();
  const ids = Array.from({ length: COUNT }, (_, index) => `dep-${index}`);
  await store.transact(async (tx) => {
    for (const id of ids)
      await tx.deployments.insert(
        runningDeployment({ id, providerId: 'provider-x', offerId: 'gpu-1', region: 'eu-one' }),
      );
  });
  let watching = 0;
  let most = 0;
  const watch: typeof store.watch = (...watched) => {
    most = Math.max(most, ++watching);
    const unwatch = store.watch(...watched);
    return () => {
      watching--;
      unwatch();
    };
  };
  const watched = { ...deps, store: { ...store, read: store.read, watch } };
  const all = Promise.allSettled(ids.map((id) => pauseDeployment(watched, caller, id)));
  const outcomes = (await outcomeOf(clock, all)) as PromiseSettledResult<unknown>[];
  const codes = new Set(outcomes.map((it) => (it.status === 'rejected' ? it.reason.code : 'done')));
  expect([...codes]).toEqual(['PROVIDER_REFUSED']);
  expect([most, watching, clock.pendingTimers]).toEqual([COUNT, 0, 0]);
  expect((await read({ store }, 'dep-999')).action).toBeNull();
  await close();
});
