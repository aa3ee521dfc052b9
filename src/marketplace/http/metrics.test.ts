import { afterEach, beforeEach, expect, it } from 'vitest';
import { ProviderError } from '../../client/orchestrator-client.ts';
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
