import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Tending } from './provider-workers.ts';
import {
  accept,
  MINUTE_MS,
  openTended,
  read,
  running,
  seededRandom,
  stopped,
  type Tended,
  tellings,
} from './sync.fixture.ts';

let tended: Tended;
beforeEach(async () => {
  tended = await openTended();
});
afterEach(() => tended.close());

describe('a provider that hangs', () => {
  it('delays no other, and what it holds up goes on once it answers (F65) [provider-hang-isolated]', async () => {
    const slow = await Promise.all(
      Array.from({ length: 40 }, (_, index) => accept(tended, { number: index + 1 })),
    );
    const id = await accept(tended, { number: 99, providerId: 'provider-y' });
    tended.plain.faults.plan = () => 'hang';
    tended.tending.start();
    await tended.clock.advance(2 * MINUTE_MS);
    expect((await read(tended, id)).status).toBe('running');
    const polls = tended.other.faults.calls
      .filter(({ method }) => method === 'getInstance')
      .map(({ at }) => at);
    const pauses = polls.slice(1).map((at, index) => at - (polls[index] ?? 0));
    expect(Math.max(...pauses)).toBeLessThanOrEqual(30_000);
    expect((await read(tended, slow[0] ?? '')).status).toBe('deploying');
    tended.plain.faults.plan = () => 'none';
    await tended.clock.advance(3 * MINUTE_MS);
    const states = await Promise.all(slow.map(async (it) => (await read(tended, it)).status));
    expect(new Set(states)).toEqual(new Set(['running']));
    expect(tended.plain.instances).toHaveLength(40);
  });

  it('is asked for a few at a time', async () => {
    tended.deps.options = {
      ...tended.deps.options,
      polling: { ...tended.deps.options.polling, concurrency: 3 },
    };
    for (let number = 1; number <= 10; number++) await accept(tended, { number });
    let open = 0;
    let most = 0;
    const { listAvailability } = tended.plain.client;
    tended.plain.client.listAvailability = async (...args) => {
      most = Math.max(most, ++open);
      return listAvailability(...args).finally(() => open--);
    };
    tended.plain.faults.plan = (method) => (method === 'listAvailability' ? 'hang' : 'none');
    const tending = new Tending({ ...tended.deps });
    tending.start();
    await tended.clock.advance(MINUTE_MS);
    expect(most).toBe(3);
    await stopped(tended.clock, tending);
  });
});

describe('two processes on one database', () => {
  it('tend each provider in one of them, and the other takes over', async () => {
    const second = new Tending({ ...tended.deps, random: seededRandom(2) });
    const id = await accept(tended);
    tended.tending.start();
    second.start();
    await tended.clock.advance(2 * MINUTE_MS);
    expect((await read(tended, id)).status).toBe('running');
    expect(tended.plain.faults.countOf('createInstance')).toBe(1);
    const polls = () => tended.plain.faults.calls.filter(({ method }) => method === 'getInstance');
    const from = polls().length;
    await tended.clock.advance(10 * MINUTE_MS);
    const times = polls()
      .slice(from)
      .map(({ at }) => at);
    expect(Math.min(...times.slice(1).map((at, index) => at - (times[index] ?? 0)))).toBeGreaterThanOrEqual(
      10_000,
    );
    await stopped(tended.clock, tended.tending);
    const until = polls().length;
    await tended.clock.advance(MINUTE_MS);
    expect(polls().length).toBeGreaterThan(until);
    await stopped(tended.clock, second);
  });

  it('notice within seconds what the other has accepted, and at once what they are told of', async () => {
    tended.tending.start();
    await tended.clock.advance(7_000);
    await accept(tended);
    await tended.clock.advance(5_000);
    expect(tended.plain.instances).toHaveLength(1);
    await accept(tended, { number: 2 });
    tended.tending.wake('provider-x');
    tended.tending.wake('nobody');
    await tended.clock.advance(1);
    expect(tended.plain.instances).toHaveLength(2);
  });
});

describe('an end', () => {
  it('lets what runs come to its end, writes what was seen, and leaves no timer', async () => {
    const { id } = await running(tended);
    await tended.clock.advance(MINUTE_MS);
    const lastPoll = () => tended.plain.faults.calls.findLast(({ method }) => method === 'getInstance')?.at;
    await stopped(tended.clock, tended.tending);
    expect((await read(tended, id)).observedAt).toBe(lastPoll());
    expect(tended.clock.pendingTimers).toBe(0);
    const lease = await tended.store.transact((tx) =>
      tx.leases.claim('provider:provider-x', 'another', tended.clock.now(), 1_000),
    );
    expect(lease).not.toBeNull();
  });

  it('of the lease ends the work', async () => {
    await running(tended);
    const { transact } = tended.store;
    tended.store.transact = () => Promise.reject(new Error('the database does not answer'));
    await tended.clock.advance(40_000);
    const polls = tended.plain.faults.countOf('getInstance');
    await tended.clock.advance(2 * MINUTE_MS);
    expect(tended.plain.faults.countOf('getInstance')).toBe(polls);
    expect(tellings(tended.told, 'error', 'the store does not answer')).toBe(2);
    tended.store.transact = transact;
    await tended.clock.advance(MINUTE_MS);
    expect(tended.plain.faults.countOf('getInstance')).toBeGreaterThan(polls);
  });

  it('ends the work too where the database never answers', async () => {
    await running(tended);
    const { transact } = tended.store;
    const hung = Promise.withResolvers<never>();
    tended.store.transact = () => hung.promise;
    const hungAt = tended.clock.now();
    await tended.clock.advance(2 * MINUTE_MS);
    expect(tended.plain.faults.calls.at(-1)?.at).toBeLessThanOrEqual(hungAt + 30_000);
    tended.store.transact = transact;
    hung.reject(new Error('the database did not answer'));
  });
});
