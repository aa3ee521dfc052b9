import { expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { loadCatalog } from '../../config/load.ts';
import { StoreUnavailable } from '../../ports/errors.ts';
import type { Store } from '../model/store.ts';
import { Metrics, WorkMetrics } from './metrics.ts';

const ANSWER_MS = 1_700;

it('metrics of an unresponsive database are answered after one timeout, not one for each figure', async () => {
  const clock = new VirtualClock();
  const late = () =>
    new Promise((_resolve, reject) => {
      clock.setTimer(ANSWER_MS, () => reject(new StoreUnavailable('no answer')));
    });
  const repository = new Proxy({}, { get: () => late });
  const metrics = new Metrics({
    version: '0.0.0',
    store: {
      read: new Proxy({}, { get: () => repository }),
      isCommitFeedLive: () => false,
    } as unknown as Store,
    clock,
    platforms: new Map([
      [
        'default',
        {
          health: { isUp: true, isSuspect: false },
          losses: { held: 0 },
          inventory: { ageMs: 0, freeUnits: new Map() },
        },
      ],
    ]),
    writes: { areWritesTaken: true },
    alarms: { listOpen: () => [] },
    work: new WorkMetrics(),
    catalog: loadCatalog('fixtures/catalogs/halyard.yaml'),
    supply: {
      isOpen: () => true,
      unclaimedUnits: () => 0,
      platformUnits: () => undefined,
      obstacles: () => [],
      isCountPartial: () => false,
      areStorageClaimsComplete: () => true,
      unclaimedStorageGb: () => 0,
    },
    certificates: { list: () => [] },
  });
  let text = '';
  const rendered = metrics.render().then((answer) => {
    text = answer.text;
  });
  await clock.advance(ANSWER_MS);
  await new Promise((resolve) => setImmediate(resolve));
  expect(text).toContain('berth_store_up 0');
  await clock.advance(ANSWER_MS);
  await rendered;
});
