import { expect, it } from 'vitest';
import { silentLog } from '../../../../test/support/doubles/log.ts';
import {
  now,
  runningDeployment,
  segment,
  team,
  volume,
} from '../../../../test/support/rows/marketplace-rows.ts';
import { FigureRecorder, startOf } from '../../../operator-kit/figures/recorder.ts';
import { openBooks } from '../../ledger/ledger.fixture.ts';
import { costOf } from '../../ledger/price-change.ts';
import { endBilling } from '../../ledger/segments.ts';
import { figuresView } from './figures.ts';
import { figureSource } from './source.ts';

const HOUR = 3_600_000;

const actor = { name: 'mara', source: 'api', address: null } as const;

async function openMarket() {
  const books = await openBooks(1_000_000_000);
  const source = figureSource({ ...books.deps, providers: () => ['provider-a', 'provider-b'] });
  const recorder = new FigureRecorder({ ...books.deps, log: silentLog, source });
  const read = (figure: string, input: object = {}) =>
    figuresView.perform(books.deps, actor, { figure, range: '24h', csv: undefined, ...input } as never);
  const pass = async (ms: number): Promise<void> => {
    for (let left = ms; left > 0; left -= HOUR / 2) {
      await books.clock.advance(Math.min(left, HOUR / 2));
      await recorder.run();
    }
  };
  return { ...books, recorder, read, pass };
}

it('revenue adds up to what the ledger charges, to the micro-USD, at rates and times that do not divide', async () => {
  const market = await openMarket();
  const { store, clock, deps, read, pass } = market;
  await clock.advance(1_234_567);
  await market.run({ originalRateMicroUsd: 2_390_001 });
  await market.keep({ originalRateMicroUsd: 10_007 });
  for (let hour = 0; hour < 5; hour++) {
    await market.observe('dep-1');
    await pass(HOUR - 777);
  }
  await market.observe('dep-1');
  await clock.advance(400_000);
  await market.recorder.run();
  // What is confirmed by now is charged when billing ends.
  const charged = async () =>
    (await store.read.ledger.segmentsOf('deployment', 'dep-1')).reduce(
      (sum, one) => sum + one.postedMicroUsd,
      0,
    );
  const observedAt = (await store.read.deployments.byId('dep-1'))?.observedAt ?? 0;
  await store.transact((tx) => endBilling(deps, tx, 'deployment', 'dep-1', observedAt));
  const stored = await store.read.ledger.openSegmentOf('volume', 'vol-1');
  const at = startOf(5 * 60_000, clock.now()) + 5 * 60_000;
  await clock.advance(at - clock.now());
  await market.recorder.run();
  const ofVolume = costOf(stored?.rateMicroUsdPerHour ?? 0, at - (stored?.startedAt ?? 0));
  const whole = (await read('revenue')).whole;
  expect(Math.round((whole?.['revenue'] ?? 0) * 1e6)).toBe((await charged()) + ofVolume);
  expect(whole?.['cost_unknown']).toBe(whole?.['revenue']);
  expect((await read('revenue', { team: 'team-1' })).whole).toEqual(whole);
  expect((await read('revenue', { team: 'team-9' })).whole?.['revenue']).toBe(0);
  expect((await read('revenue', { provider: 'provider-b' })).whole?.['revenue']).toBe(0);
});

it('the time that a silent provider confirms later is counted in the hours in which it was', async () => {
  const market = await openMarket();
  await market.run();
  await market.pass(4 * HOUR);
  const revenues = async () =>
    (await market.read('revenue')).points.map(({ values }) => values?.['revenue'] ?? null);
  expect((await revenues()).reduce((sum: number, usd) => sum + (usd ?? 0), 0)).toBe(0);
  await market.observe('dep-1');
  await market.pass(HOUR);
  expect((await revenues()).filter((usd) => (usd ?? 0) >= 1.999).length).toBeGreaterThanOrEqual(3);
  expect((await market.read('revenue')).whole?.['revenue']).toBeCloseTo(8, 1);
});

it('the margin is what is left of the revenue whose cost at the provider is known', async () => {
  const market = await openMarket();
  await market.store.transact(async (tx) => {
    await tx.deployments.insert(runningDeployment({ id: 'dep-5', providerId: 'provider-b' }));
    const rates = { rateMicroUsdPerHour: 2_000_000, providerRateMicroUsdPerHour: 1_500_000 };
    const endedAt = now + 2 * HOUR;
    await tx.ledger.insertSegment(segment({ id: 'seg-5', subjectId: 'dep-5', ...rates, endedAt }));
  });
  await market.pass(3 * HOUR);
  expect((await market.read('revenue', { provider: 'provider-b' })).whole).toEqual({
    revenue: 4,
    provider_cost: 3,
    margin: 1,
    cost_unknown: 0,
  });
});

it('launches count at the hour of their request, also if they fail later; each reason by itself', async () => {
  const market = await openMarket();
  const { store, clock } = market;
  await market.recorder.run();
  const at = clock.now();
  await store.transact(async (tx) => {
    for (const id of ['dep-7', 'dep-8', 'dep-9'])
      await tx.deployments.insert(
        runningDeployment({ id, status: 'deploying', startedAt: null, createdAt: at }),
      );
  });
  await market.pass(2 * HOUR);
  await store.transact(async (tx) => {
    const failed = await tx.deployments.byId('dep-9');
    if (failed !== null)
      await tx.deployments.update({
        ...failed,
        status: 'failed',
        failureReason: 'out_of_stock',
        stoppedAt: clock.now(),
      });
  });
  await market.pass(HOUR);
  const launches = await market.read('launches', { provider: 'provider-a' });
  expect(launches.whole).toEqual({ launched: 2, failed: 1 });
  expect(launches.points.find(({ values }) => values?.['failed'] === 1)?.at).toBe(
    new Date(startOf(HOUR, at)).toISOString(),
  );
  expect((await market.read('failures')).whole).toEqual({ out_of_stock: 1 });
  expect((await market.read('failures', { provider: 'provider-b' })).whole).toEqual({});
});

it('burn is the hourly cost of what is billed, and bad debt what teams owe beyond their balances', async () => {
  const market = await openMarket();
  const { store } = market;
  await market.run({ originalRateMicroUsd: 3_000_000 });
  await store.transact(async (tx) => {
    await tx.teams.insert(team({ id: 'team-2', slug: 'two', balanceMicroUsd: -7_000_000 }));
    await tx.volumes.insert(volume({ id: 'vol-9', teamId: 'team-2', providerId: 'provider-b' }));
    await tx.ledger.insertSegment(
      segment({
        id: 'seg-9',
        subjectKind: 'volume',
        subjectId: 'vol-9',
        teamId: 'team-2',
        state: 'stored',
        rateMicroUsdPerHour: 500_000,
        originalRateMicroUsdPerHour: 1_000_000,
        startedAt: now - HOUR,
      }),
    );
  });
  await market.recorder.run();
  expect((await market.read('burn')).whole).toEqual({ burn: 3.5 });
  expect((await market.read('burn', { provider: 'provider-b' })).whole).toEqual({ burn: 0.5 });
  expect((await market.read('bad_debt')).whole).toEqual({ bad_debt: 8 });
  expect(await market.read('bad_debt', { range: '90d' })).toMatchObject({
    step: 'day',
    whole: { bad_debt: 8 },
  });
});
