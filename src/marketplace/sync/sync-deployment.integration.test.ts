import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { unreadableAnswers } from '../../../test/support/doubles/provider-faults.ts';
import { intent } from '../../../test/support/rows/marketplace-rows.ts';
import { ProviderError } from '../../client/orchestrator-client.ts';
import { pauseDeployment } from '../deployments/lifecycle.ts';
import { caller } from '../deployments/market.fixture.ts';
import {
  accept,
  billed,
  countLines,
  HOUR_MS,
  MINUTE_MS,
  openProviderWorkers,
  read,
  running,
  type SyncSetup,
} from './sync.fixture.ts';

let setup: SyncSetup;
beforeEach(async () => {
  setup = await openProviderWorkers();
});
afterEach(() => setup.close());

const notFound = new ProviderError('not_found', '404: not_found', { status: 404, code: 'not_found' });

/** Makes every read of an instance fail until the returned function is called. */
function failReads(error: ProviderError): () => void {
  setup.plain.faults.plan = (method) => (method === 'getInstance' ? { error } : 'none');
  return () => {
    setup.plain.faults.plan = () => 'none';
  };
}

describe('a deployment that was accepted', () => {
  it('is created, runs, and is billed from the first observation of that [poll-to-running]', async () => {
    const since = setup.clock.now();
    const id = await accept(setup, { tempSshKeyId: 'ssh-temp' });
    setup.workers.start();
    await setup.clock.advance(2 * MINUTE_MS);
    const record = await read(setup, id);
    expect(record).toMatchObject({
      status: 'running',
      ipAddress: '192.0.2.1',
      sshPort: 22,
      loginUser: 'ubuntu',
    });
    expect(record.launch).toMatchObject({ state: 'made', request: null });
    const seenAt = ((record.startedAt ?? 0) - since) / 1_000;
    expect(seenAt).toBeGreaterThanOrEqual(45);
    expect(seenAt).toBeLessThan(65);
    expect(await billed(setup, id, since)).toEqual([`running 2000000 ${seenAt}–`]);
    expect(await setup.store.read.sshKeys.byId('ssh-temp')).not.toBeNull();
    expect((await setup.store.read.mail.list({ limit: 10 })).map(({ kind }) => kind)).toEqual([
      'deployment_ready',
    ]);
  });

  it('fails when it is not reachable within the deploy timeout, and is removed there [poll-deploy-timeout]', async () => {
    setup.plain.options.bootMs = HOUR_MS;
    const id = await accept(setup, { tempSshKeyId: 'ssh-temp' });
    setup.workers.start();
    await setup.clock.advance(15 * MINUTE_MS - 1);
    expect((await read(setup, id)).status).toBe('deploying');
    await setup.clock.advance(MINUTE_MS);
    expect(await read(setup, id)).toMatchObject({ status: 'failed', failureReason: 'provisioning_timeout' });
    expect(await billed(setup, id, 0)).toEqual([]);
    expect(setup.plain.instances).toEqual([]);
    expect(await setup.store.read.sshKeys.byId('ssh-temp')).toBeNull();
  });
});

describe('a deployment that runs', () => {
  it('is polled every 10 to 30 seconds, and only the time of the last observation is written', async () => {
    const { id } = await running(setup);
    const before = await read(setup, id);
    const from = setup.clock.now();
    await setup.clock.advance(20 * MINUTE_MS);
    const polls = setup.plain.faults.calls.filter(({ method, at }) => method === 'getInstance' && at >= from);
    const pauses = polls.slice(1).map(({ at }, index) => at - (polls[index]?.at ?? 0));
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(10_000);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(30_000);
    expect(new Set(pauses).size).toBeGreaterThan(20);
    const { observedAt, ...after } = await read(setup, id);
    expect({ ...after, observedAt: before.observedAt }).toEqual(before);
    expect(setup.clock.now() - (observedAt ?? 0)).toBeLessThanOrEqual(60_000);
  });

  it.each(Object.keys(unreadableAnswers))(
    'keeps its status while the answer is: %s (F54) [poll-unclear-answer]',
    async (kind) => {
      const { id } = await running(setup);
      const error = unreadableAnswers[kind]?.() ?? notFound;
      const before = await read(setup, id);
      const recover = failReads(error);
      await setup.clock.advance(5 * MINUTE_MS);
      const during = await read(setup, id);
      expect({ ...during, observedAt: 0 }).toEqual({ ...before, observedAt: 0 });
      expect(setup.clock.now() - (during.observedAt ?? 0)).toBeGreaterThan(4 * MINUTE_MS);
      expect(setup.logged.filter(({ level }) => level === 'warn')).toHaveLength(1);
      recover();
      await setup.clock.advance(MINUTE_MS);
      expect(setup.clock.now() - ((await read(setup, id)).observedAt ?? 0)).toBeLessThanOrEqual(60_000);
    },
  );

  it('ends when a second poll and the list confirm the 404, and costs nothing after the last observation [not-found-confirmed]', async () => {
    const { id, instanceId } = await running(setup);
    await setup.clock.advance(20_000);
    setup.plain.vanish(instanceId);
    await setup.clock.advance(5 * MINUTE_MS);
    const { status, stoppedAt, observedAt, cleanup } = await read(setup, id);
    // A 404 does not authorise a deletion.
    expect({ status, cleanup }).toEqual({ status: 'terminated-provider', cleanup: 'none' });
    expect(stoppedAt).toBe(observedAt);
    const [segment] = await setup.store.read.ledger.segmentsOf('deployment', id);
    expect(segment?.endedAt).toBe(stoppedAt);
    expect(setup.clock.now() - (stoppedAt ?? 0)).toBeGreaterThan(4 * MINUTE_MS);
  });

  it('that its provider parks is billed at the stopped rate from that time [provider-parks]', async () => {
    const since = setup.clock.now();
    const { id, instanceId } = await running(setup);
    const startedAt = ((await read(setup, id)).startedAt ?? 0) - since;
    setup.plain.set(instanceId, { status: 'STOPPED' });
    const parkedAt = setup.clock.now() - since;
    await setup.clock.advance(10 * MINUTE_MS);
    const record = await read(setup, id);
    expect(record).toMatchObject({
      status: 'stopped',
      pausedAt: since + parkedAt,
      stoppedRateMicroUsd: 500_000,
    });
    expect(await billed(setup, id, since)).toEqual([
      `running 2000000 ${startedAt / 1_000}–${parkedAt / 1_000}`,
      `stopped 500000 ${parkedAt / 1_000}–`,
    ]);
  });

  it('as SPOT ends as soon as its provider reclaims it, and follows its price [spot-reclaimed]', async () => {
    const spot = { offerId: 'gpu-spot', instanceType: 'SPOT' } as const;
    const since = setup.clock.now();
    const { id, instanceId } = await running(setup, {
      ...spot,
      originalRateMicroUsd: 1_000_000,
      rateMicroUsd: 1_000_000,
    });
    setup.plain.reprice(instanceId, 1.5);
    await setup.clock.advance(MINUTE_MS);
    expect(await read(setup, id)).toMatchObject({
      originalRateMicroUsd: 1_500_000,
      rateMicroUsd: 1_500_000,
    });
    setup.plain.reprice(instanceId, 150);
    await setup.clock.advance(MINUTE_MS);
    const reclaimedAt = setup.clock.now();
    // The poll may see it late.
    setup.plain.options.deleteMs = 40_000;
    setup.plain.reclaim(instanceId);
    await setup.clock.advance(2 * MINUTE_MS);
    expect(await read(setup, id)).toMatchObject({ status: 'terminated-provider', cleanup: 'done' });
    const rates = (await billed(setup, id, since)).map((it) => it.split(' ')[1]);
    expect(rates).toEqual(['1000000', '1500000']);
    expect((await read(setup, id)).stoppedAt).toBeGreaterThanOrEqual(reclaimedAt);
    expect((await read(setup, id)).stoppedAt).toBeLessThanOrEqual(reclaimedAt + 5_000);
  });

  it('compares a spot price with the ordered one, even where the first observed one differs [spot-price-of-order]', async () => {
    const rates = [
      'originalRateMicroUsd',
      'rateMicroUsd',
      'providerRateMicroUsd',
      'orderedProviderRateMicroUsd',
    ];
    const id = await accept(setup, {
      offerId: 'gpu-spot',
      instanceType: 'SPOT',
      ...Object.fromEntries(rates.map((rate) => [rate, 1_000_000])),
    });
    const shown = (usdPerHour: number) => {
      setup.plain.faults.plan = (method) =>
        method === 'getInstance'
          ? { answer: (instance: object) => ({ ...instance, price_per_hour: usdPerHour }) }
          : 'none';
      return setup.clock.advance(2 * MINUTE_MS);
    };
    setup.workers.start();
    await shown(9.9);
    expect(await read(setup, id)).toMatchObject({ status: 'running', rateMicroUsd: 9_900_000 });
    for (const usdPerHour of [99, 10.01]) {
      await shown(usdPerHour);
      expect((await read(setup, id)).rateMicroUsd).toBe(9_900_000);
    }
    await shown(10);
    expect((await read(setup, id)).rateMicroUsd).toBe(10_000_000);
  });

  it('compares a spot price with the first one, so that it cannot creep up, or stay 0 after a moment at 0', async () => {
    const { instanceId, id } = await running(setup, { offerId: 'gpu-spot', instanceType: 'SPOT' });
    const first = (await read(setup, id)).originalRateMicroUsd;
    for (const factor of [9, 81, 729, 0, 1]) {
      setup.plain.reprice(instanceId, (first * factor) / 1_000_000);
      await setup.clock.advance(MINUTE_MS);
    }
    const segments = await setup.store.read.ledger.segmentsOf('deployment', id);
    expect(segments.map(({ rateMicroUsdPerHour }) => rateMicroUsdPerHour / first)).toEqual([1, 9, 0, 1]);
  });
});

describe('a change in progress', () => {
  const begin = async (id: string, kind: 'pause' | 'restart') => {
    const record = await read(setup, id);
    const action = intent(kind, { since: setup.clock.now() });
    await setup.store.transact((tx) => tx.deployments.update({ ...record, action }));
  };

  it('a stop without an answer is billed as a stop from the time it happened (F56) [stop-without-answer]', async () => {
    setup.plain.options.stopMs = 40_000;
    const since = setup.clock.now();
    const { id, instanceId } = await running(setup);
    await begin(id, 'pause');
    setup.plain.stop(instanceId);
    const doneAt = setup.clock.now() + 40_000;
    await setup.clock.advance(2 * MINUTE_MS);
    expect(await read(setup, id)).toMatchObject({ status: 'stopped', action: null, pausedAt: doneAt });
    expect((await billed(setup, id, since)).at(-1)).toBe(`stopped 500000 ${(doneAt - since) / 1_000}–`);
  });

  it('a restart ends when the provider says so', async () => {
    const { id, instanceId } = await running(setup);
    await begin(id, 'restart');
    setup.plain.restart(instanceId);
    await setup.clock.advance(45_000);
    expect((await read(setup, id)).action?.kind).toBe('restart');
    await setup.clock.advance(45_000);
    expect(await read(setup, id)).toMatchObject({ status: 'running', action: null });
  });

  it('a restart that was just accepted does not count as finished while it does not show yet', async () => {
    const { id } = await running(setup);
    for (let seconds = 0; seconds < 40; seconds++) {
      await begin(id, 'restart');
      await setup.clock.advance(1_000);
    }
    expect(setup.plain.faults.countOf('restartStatus')).toBe(0);
    await setup.clock.advance(30_000);
    expect((await read(setup, id)).action).toBeNull();
  });

  it('a change that never shows is given up', async () => {
    const { id } = await running(setup);
    setup.plain.faults.plan = (method) => (method === 'restartStatus' ? 'lose' : 'none');
    await begin(id, 'restart');
    await setup.clock.advance(15 * MINUTE_MS - 1);
    expect((await read(setup, id)).action?.kind).toBe('restart');
    await setup.clock.advance(MINUTE_MS);
    expect(await read(setup, id)).toMatchObject({ status: 'running', action: null });
    expect(countLines(setup.logged, 'warn', 'did not show')).toBe(1);
  });

  it('a stop that does not show for a minute counts as not taken: other changes are allowed', async () => {
    const { id } = await running(setup);
    await begin(id, 'pause');
    await setup.clock.advance(MINUTE_MS - 1);
    expect((await read(setup, id)).action?.kind).toBe('pause');
    await setup.clock.advance(MINUTE_MS);
    expect(await read(setup, id)).toMatchObject({ status: 'running', action: null });
  });
});

it('an answer with the state before a stop does not revert the stop [stop-stale-answer]', async () => {
  const { id } = await running(setup);
  await setup.clock.advance(10 * MINUTE_MS);
  const before = structuredClone(setup.plain.instances[0]);
  const asked = pauseDeployment(setup.deps, caller, id);
  await setup.clock.advance(8_000);
  await asked;
  let stale = 1;
  setup.plain.faults.plan = (method) =>
    method === 'getInstance' && stale-- > 0 ? { instead: before } : 'none';
  await setup.clock.advance(45_000);
  expect(stale).toBeLessThan(0);
  expect((await read(setup, id)).status).toBe('stopped');
  expect((await billed(setup, id, 0)).map((line) => line.split(' ')[0])).toEqual(['running', 'stopped']);
});
