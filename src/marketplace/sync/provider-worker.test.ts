import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { intent, volume } from '../../../test/support/rows/marketplace-rows.ts';
import { ProviderError } from '../../client/orchestrator-client.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import { openWorld, placeOf, type World } from '../volumes/seven-providers.fixture.ts';
import { leaseOf, ProviderWorkers } from './provider-workers.ts';
import {
  accept,
  countLines,
  MINUTE_MS,
  openProviderWorkers,
  read,
  running,
  type SyncSetup,
  seededRandom,
  stopped,
} from './sync.fixture.ts';

let setup: SyncSetup;
beforeEach(async () => {
  setup = await openProviderWorkers({ hasOther: true });
});
afterEach(() => setup.close());

describe('a provider that hangs', () => {
  it('delays no other provider, and its own work continues once it answers (F65) [provider-hang-isolated]', async () => {
    const slow = await Promise.all(
      Array.from({ length: 40 }, (_, index) => accept(setup, { number: index + 1 })),
    );
    const id = await accept(setup, { number: 99, providerId: 'provider-y' });
    setup.plain.faults.plan = () => 'hang';
    setup.workers.start();
    await setup.clock.advance(2 * MINUTE_MS);
    expect((await read(setup, id)).status).toBe('running');
    const polls = setup.other.faults.calls
      .filter(({ method }) => method === 'getInstance')
      .map(({ at }) => at);
    const pauses = polls.slice(1).map((at, index) => at - (polls[index] ?? 0));
    expect(Math.max(...pauses)).toBeLessThanOrEqual(30_000);
    expect((await read(setup, slow[0] ?? '')).status).toBe('deploying');
    setup.plain.faults.plan = () => 'none';
    await setup.clock.advance(3 * MINUTE_MS);
    const states = await Promise.all(slow.map(async (it) => (await read(setup, it)).status));
    expect(new Set(states)).toEqual(new Set(['running']));
    expect(setup.plain.instances).toHaveLength(40);
  });

  it('is asked for a few at a time', async () => {
    setup.deps.options = {
      ...setup.deps.options,
      polling: { ...setup.deps.options.polling, concurrency: 3 },
    };
    for (let number = 1; number <= 10; number++) await accept(setup, { number });
    let open = 0;
    let most = 0;
    const { listAvailability } = setup.plain.client;
    setup.plain.client.listAvailability = async (...args) => {
      most = Math.max(most, ++open);
      return listAvailability(...args).finally(() => open--);
    };
    setup.plain.faults.plan = (method) => (method === 'listAvailability' ? 'hang' : 'none');
    const workers = new ProviderWorkers({ ...setup.deps });
    workers.start();
    await setup.clock.advance(MINUTE_MS);
    expect(most).toBe(3);
    await stopped(setup.clock, workers);
  });
});

describe('two processes on one database', () => {
  it('notice within seconds what the other has accepted, and at once after a wake', async () => {
    setup.workers.start();
    await setup.clock.advance(7_000);
    const { onWake } = setup.store;
    let lost = true;
    setup.store.onWake = (woken) => onWake((...about) => (lost ? undefined : woken(...about)));
    const second = new ProviderWorkers({ ...setup.deps, random: seededRandom(2) });
    await stopped(setup.clock, setup.workers);
    second.start();
    await setup.clock.advance(7_000);
    await accept(setup);
    await setup.clock.advance(5_000);
    expect(setup.plain.instances).toHaveLength(1);
    lost = false;
    await accept(setup, { number: 2 });
    await setup.clock.advance(1);
    expect(setup.plain.instances).toHaveLength(2);
    await stopped(setup.clock, second);
  });

  it('begin a deployment after a wake with its id, and read no other', async () => {
    setup.workers.start();
    await setup.clock.advance(7_000);
    const { deployments } = setup.store.read;
    const lists: string[] = [];
    for (const list of ['toSync', 'newToSync'] as const) {
      const { [list]: read } = deployments;
      deployments[list] = (providerId) => {
        lists.push(list);
        return read(providerId);
      };
    }
    await accept(setup);
    await setup.clock.advance(1);
    expect(setup.plain.instances).toHaveLength(1);
    expect(lists).toEqual([]);
    await setup.clock.advance(5_000);
    expect(new Set(lists)).toEqual(new Set(['newToSync']));
  });
});

describe('a change of a volume without a wake', () => {
  let world: World;
  let workers: ProviderWorkers;
  const put = (changes: Partial<VolumeRecord>) =>
    world.deps.store.transact((tx) => tx.volumes.insert(volume({ providerId: 'provider-a', ...changes })));
  beforeEach(async () => {
    world = await openWorld();
    workers = new ProviderWorkers({ ...world.deps, refreshCatalog: async () => undefined });
  });
  afterEach(async () => {
    await stopped(world.clock, workers);
    await world.close();
  });

  it('begins within seconds in a process that takes over [unheard-volume-change]', async () => {
    const region = placeOf['a']?.region ?? '';
    const action = intent('create', { attempt: 0 });
    await put({ region, status: 'creating', startedAt: null, providerVolumeId: null, action });
    workers.start();
    await world.clock.advance(10_000);
    expect(world.writes()).toContain('createVolume');
  });

  it('begins within seconds though the volume is known to be at rest', async () => {
    const { id } = world
      .plain('a')
      .createVolume({ name: 'data', size_gb: 100, region: placeOf['a']?.region ?? '' });
    await put({ id: 'vol-1', providerVolumeId: id });
    workers.start();
    await world.clock.advance(30_000);
    await world.deps.store.transact(async (tx) => {
      const record = await tx.volumes.byId('vol-1');
      if (record === null) return;
      const action = intent('delete', {
        attempt: 0,
        since: world.clock.now(),
        until: world.clock.now() + 20_000,
      });
      await tx.volumes.update({ ...record, action });
    });
    await world.clock.advance(10_000);
    expect(world.writes()).toContain('deleteVolume');
  });
});

describe('an end', () => {
  it('lets running work finish, writes the confirmations, and leaves no timer', async () => {
    const { id } = await running(setup);
    await setup.clock.advance(MINUTE_MS);
    const lastPoll = () => setup.plain.faults.calls.findLast(({ method }) => method === 'getInstance')?.at;
    await stopped(setup.clock, setup.workers);
    expect((await read(setup, id)).observedAt).toBe(lastPoll());
    expect(setup.clock.pendingTimers).toBe(0);
    const leases = await setup.store.transact((tx) =>
      tx.leases.taken(
        [leaseOf('provider-x'), leaseOf('provider-y'), 'server:0'],
        'another',
        setup.clock.now(),
      ),
    );
    expect(leases).toEqual([]);
  });

  it('of the lease before its renewal is answered loses no chore [late-renewal-keeps-chores]', async () => {
    await running(setup);
    const { transact } = setup.store;
    const pause = (ms: number) => new Promise<void>((resolve) => void setup.clock.setTimer(ms, resolve));
    const from = setup.clock.now();
    setup.store.transact = async (body) => {
      // The first renewal fails late, so that the next one is answered after the lease has expired.
      const isFirst = setup.clock.now() - from < 15_000;
      const answer = isFirst ? pause(9_000).then(() => Promise.reject(new Error('slow'))) : transact(body);
      return answer.finally(() => (isFirst ? undefined : pause(8_000)));
    };
    await setup.clock.advance(50_000);
    setup.store.transact = transact;
    await setup.clock.advance(2 * MINUTE_MS);
    await accept(setup, { number: 2 });
    await setup.clock.advance(7_000);
    expect(setup.plain.instances).toHaveLength(2);
  });

  it('of the lease ends the work', async () => {
    await running(setup);
    setup.plain.faults.plan = (method) =>
      method === 'getInstance' ? { error: new ProviderError('failed', '500') } : 'none';
    await setup.clock.advance(MINUTE_MS);
    expect(setup.workers.of('provider-x')?.problems).toEqual(['calls about deployments fail: failed']);
    const { transact } = setup.store;
    setup.store.transact = () => Promise.reject(new Error('the database does not answer'));
    await setup.clock.advance(40_000);
    // Another process holds the lease now and reports the problems.
    expect(setup.workers.of('provider-x')?.problems).toEqual([]);
    expect(setup.workers.of('provider-x')?.failingMs.size).toBe(0);
    const polls = setup.plain.faults.countOf('getInstance');
    await setup.clock.advance(2 * MINUTE_MS);
    expect(setup.plain.faults.countOf('getInstance')).toBe(polls);
    expect(countLines(setup.logged, 'error', 'the store does not answer')).toBe(1);
    setup.store.transact = transact;
    await setup.clock.advance(MINUTE_MS);
    expect(setup.plain.faults.countOf('getInstance')).toBeGreaterThan(polls);
  });

  it('ends the work too where the database never answers', async () => {
    await running(setup);
    const { transact } = setup.store;
    const hung = Promise.withResolvers<never>();
    setup.store.transact = () => hung.promise;
    const hungAt = setup.clock.now();
    await setup.clock.advance(2 * MINUTE_MS);
    expect(setup.plain.faults.calls.at(-1)?.at).toBeLessThanOrEqual(hungAt + 30_000);
    setup.store.transact = transact;
    hung.reject(new Error('the database did not answer'));
  });
});
