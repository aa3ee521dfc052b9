import { afterAll, beforeAll, expect, it } from 'vitest';
import { type PostgresServer, startPostgres } from '../../../test/support/databases/postgres.ts';
import { silentLog } from '../../../test/support/doubles/log.ts';
import { now, runningDeployment, seed, teamId, volume } from '../../../test/support/rows/marketplace-rows.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { systemRandom } from '../../runtime/system.ts';
import { openMarketplacePostgresStore } from '../../store/marketplace/postgres/store.ts';
import { assignDiscount } from '../discounts/discounts.ts';
import { priceFor } from '../discounts/price.ts';
import { defaultOptions } from '../model/options.ts';
import type { Store } from '../model/store.ts';
import { assessVolumeDiscounts } from './assess-volume.ts';
import { topUp } from './credit.ts';
import { postDue } from './post-due.ts';
import { endBilling, startBilling } from './segments.ts';
import { verifyLedger } from './verify-ledger.ts';
import { watchTeam } from './watch-team.ts';

const MINUTE_MS = 60_000;
const DEPLOYMENTS = ['dep-1', 'dep-2', 'dep-3'];

let server: PostgresServer;
let stores: Store[];
const clock = new VirtualClock(now);
const log = silentLog;

beforeAll(async () => {
  server = await startPostgres();
  const url = await server.createDatabase('marketplace');
  stores = [await openMarketplacePostgresStore(url), await openMarketplacePostgresStore(url)];
});
afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await server[Symbol.asyncDispose]();
});

function depsOf(store: Store) {
  return { store, clock, random: systemRandom, log, options: defaultOptions };
}

async function begin(store: Store): Promise<void> {
  await seed(store);
  const shared = { teamId, at: now } as const;
  const priced = { originalRateMicroUsd: 1_234_567, rateMicroUsd: 1_234_567, discountPercentage: 0 };
  await store.transact(async (tx) => {
    for (const subjectId of DEPLOYMENTS) {
      await tx.deployments.insert(runningDeployment({ id: subjectId, ...priced }));
      const named = { subjectKind: 'deployment', subjectId, state: 'running' } as const;
      await startBilling(depsOf(store), tx, { ...named, ...shared, price: priced });
    }
    await tx.volumes.insert(volume(priced));
    const named = { subjectKind: 'volume', subjectId: 'vol-1', state: 'stored' } as const;
    await startBilling(depsOf(store), tx, { ...named, ...shared, price: priced });
  });
}

/** One round as both replicas run it, regardless of the leases. */
async function round(store: Store): Promise<void> {
  const deps = depsOf(store);
  await assessVolumeDiscounts(deps, clock.now());
  const segments = await store.read.ledger.openSegments({ limit: 100 });
  for (const segment of segments) await postDue(deps, [segment], clock.now());
  await watchTeam(deps, teamId, clock.now());
}

async function turn(store: Store, subjectId: string, state: 'running' | 'stopped' | 'ended'): Promise<void> {
  await store.transact(async (tx) => {
    const record = await tx.deployments.byId(subjectId);
    if (record === null || record.status === 'terminated') return;
    const at = clock.now();
    const price = await priceFor(tx, teamId, record.originalRateMicroUsd, at);
    const isOver = state === 'ended';
    const status = isOver ? 'terminated' : state;
    await tx.deployments.update({ ...record, status, observedAt: at, stoppedAt: isOver ? at : null });
    if (isOver) await endBilling(depsOf(store), tx, 'deployment', subjectId, at);
    else
      await startBilling(depsOf(store), tx, {
        subjectKind: 'deployment',
        subjectId,
        teamId,
        state,
        price,
        at,
      });
  });
}

it('bills every hour once where two replicas bill it, stop, price and top up at the same moment', async () => {
  const [one, other] = stores;
  if (one === undefined || other === undefined) throw new Error('there are two');
  await begin(one);
  for (let tick = 0; tick < 25; tick++) {
    await clock.advance(7 * MINUTE_MS + 1);
    const payment = { teamId, amountMicroUsd: 1_000_000, reference: `pay-${tick}` };
    const subjectId = DEPLOYMENTS[tick % 3] ?? '';
    const startsAt = clock.now() + MINUTE_MS;
    await Promise.all([
      ...stores.map(round),
      ...stores.map((store) => topUp(depsOf(store), payment)),
      turn(one, subjectId, tick % 2 === 0 ? 'stopped' : 'running'),
      turn(other, subjectId, 'running'),
      ...(tick % 5 === 0
        ? [
            assignDiscount(depsOf(other), {
              teamId,
              percentage: 5 + tick,
              startsAt,
              endsAt: startsAt + 9 * MINUTE_MS,
            }),
          ]
        : []),
    ]);
  }
  await Promise.all(DEPLOYMENTS.flatMap((id) => stores.map((store) => turn(store, id, 'ended'))));
  const { findings, counts } = await verifyLedger(one, clock.now());
  expect(findings).toEqual([]);
  expect(counts.segments).toBeGreaterThan(50);
  const sums = await one.read.ledger.balances();
  expect(sums.find(({ account }) => account === 'cash')?.amountMicroUsd).toBe(-25_000_000);
});
