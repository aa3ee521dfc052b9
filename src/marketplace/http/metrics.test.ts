import { afterEach, beforeEach, expect, it } from 'vitest';
import { ProviderError } from '../../client/orchestrator-client.ts';
import { keepVerdict } from '../operate/views/books.ts';
import { accept, MINUTE_MS, openProviderWorkers, read, type Tended } from '../sync/sync.fixture.ts';
import { Metrics } from './metrics.ts';

let setup: Tended;
let metrics: Metrics;
beforeEach(async () => {
  setup = await openProviderWorkers({ bootMs: 1_000 });
  const { store, clock, deps } = setup;
  metrics = new Metrics({
    version: '0.0.0',
    store,
    clock,
    providers: deps.providers,
    writes: { areWritesTaken: true },
  });
});
afterEach(() => setup.close());

/** Of each provider. */
async function told(name: string): Promise<Record<string, number>> {
  const { text } = await metrics.render();
  const lines = text.matchAll(new RegExp(`^${name}\\{provider="([^"]+)"\\} (\\S+)$`, 'gm'));
  return Object.fromEntries([...lines].map(([, provider, value]) => [provider, Number(value)]));
}

it('machines that nobody can log in to yet are told by provider, counted at most once in five seconds', async () => {
  const name = 'berth_marketplace_deployments_waiting_for_ssh';
  const { clock, ssh, store } = setup;
  let counts = 0;
  const { countUnproved } = store.read.deployments;
  store.read.deployments.countUnproved = () => {
    counts++;
    return countUnproved();
  };
  ssh.fault = (instanceId) => (instanceId === 'i-1' ? 'none' : 'closed');
  for (const number of [1, 2, 3]) await accept(setup, { number });
  expect(await told(name)).toEqual({ 'provider-x': 0, 'provider-y': 0 });
  setup.workers.start();
  await clock.advance(2 * MINUTE_MS);
  expect(await told(name)).toEqual({ 'provider-x': 2, 'provider-y': 0 });
  for (let scrape = 0; scrape < 20; scrape++) await told(name);
  expect(counts).toBe(2);
  ssh.fault = () => 'none';
  await clock.advance(2 * MINUTE_MS);
  expect(await told(name)).toEqual({ 'provider-x': 0, 'provider-y': 0 });
});

it('a provider that never told what it sells is silent since the start, not beyond every alert', async () => {
  await setup.clock.advance(7 * MINUTE_MS);
  expect(await told('berth_marketplace_provider_heard_seconds')).toEqual({
    'provider-x': 420,
    'provider-y': 420,
  });
});

it('what the last check of the books found, and how long ago that was', async () => {
  const { store, clock } = setup;
  const figure = async (name: string): Promise<number> => {
    const { text } = await metrics.render();
    return Number(new RegExp(`^berth_marketplace_ledger_${name} (\\S+)$`, 'm').exec(text)?.[1]);
  };
  expect([await figure('findings'), await figure('verified_seconds')]).toEqual([Number.NaN, Number.NaN]);
  const findings = [{ id: 'dep-1', problem: 'its sum is wrong' }];
  const counts = { teams: 1, subjects: 1, segments: 1, slices: 1 };
  await keepVerdict(store, { findings, counts }, clock.now());
  await clock.advance(MINUTE_MS);
  expect([await figure('findings'), await figure('verified_seconds')]).toEqual([1, 60]);
  await keepVerdict(store, { findings: [], counts }, clock.now());
  await clock.advance(MINUTE_MS);
  expect(await figure('findings')).toBe(0);
});

it('losses that are held beyond the cap are told by provider, until the provider knows them again', async () => {
  const name = 'berth_marketplace_losses_held';
  const { clock, plain, workers } = setup;
  const ids: string[] = [];
  for (let number = 1; number <= 8; number++) ids.push(await accept(setup, { number }));
  workers.start();
  await clock.advance(2 * MINUTE_MS);
  expect(await told(name)).toEqual({ 'provider-x': 0, 'provider-y': 0 });
  plain.faults.plan = (method) => {
    if (method === 'listInstances') return { instead: [] };
    return method === 'getInstance' ? { error: new ProviderError('not_found', '404') } : 'none';
  };
  await clock.advance(10 * MINUTE_MS);
  const records = await Promise.all(ids.map((id) => read(setup, id)));
  const held = records.filter(({ status }) => status === 'running').length;
  expect(held).toBeGreaterThan(0);
  expect(await told(name)).toEqual({ 'provider-x': held, 'provider-y': 0 });
  plain.faults.plan = () => 'none';
  await clock.advance(10 * MINUTE_MS);
  expect(await told(name)).toEqual({ 'provider-x': 0, 'provider-y': 0 });
});
