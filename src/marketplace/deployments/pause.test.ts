import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { unreadableAnswers } from '../../../test/support/doubles/provider-faults.ts';
import { discount, intent } from '../../../test/support/rows/marketplace-rows.ts';
import { ProviderError } from '../../client/orchestrator-client.ts';
import { ApiError } from '../contract/errors.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { applyObservation } from './apply-observation.ts';
import { pauseDeployment } from './lifecycle.ts';
import {
  caller,
  deploy,
  type Market,
  openMarket,
  outcomeOf,
  read,
  withoutRevision,
} from './market.fixture.ts';
import { terminateDeployment } from './terminate.ts';

let market: Market;
beforeEach(async () => {
  market = await openMarket();
});
afterEach(() => market.close());

const pause = (by = caller, id = 'dep-1') => outcomeOf(market.clock, pauseDeployment(market.deps, by, id));
const stops = () => market.plain.faults.countOf('stopInstance');

/** Checks that the provider was asked at most once and that the deployment is unchanged. */
async function expectNothingChanged(before: DeploymentRecord): Promise<void> {
  expect(withoutRevision(await read(market))).toEqual(withoutRevision(before));
  expect(stops()).toBeLessThanOrEqual(1);
  expect(market.clock.pendingTimers).toBe(0);
}

it('answers stopped once the provider shows it, with the stopped rate and its discount [pause-answers-stopped]', async () => {
  await deploy(market);
  const startsAt = market.clock.now() - 1;
  await market.store.transact((tx) => tx.discounts.insert(discount({ percentage: 10, startsAt })));
  expect(await pause()).toMatchObject({
    status: 'stopped',
    stoppedHourlyRate: 0.45,
    ipAddress: '192.0.2.1',
    sshCommand: null,
    pausedAt: expect.any(String),
  });
  expect(await read(market)).toMatchObject({
    status: 'stopped',
    action: null,
    originalStoppedRateMicroUsd: 500_000,
  });
  expect(stops()).toBe(1);
});

it('the stop counts from the time that the provider reports', async () => {
  const { providerInstanceId } = await deploy(market);
  await pause();
  const { updated_at: stoppedAt } = market.plain.get(providerInstanceId ?? '');
  expect((await read(market)).pausedAt).toBe(Date.parse(stoppedAt));
});

describe('a stop is refused before the provider is asked', () => {
  it.each([
    [
      'for a machine type that cannot be stopped [pause-machine-type-refused]',
      { offerId: 'gpu-spot', instanceType: 'SPOT' },
      'ACTION_UNSUPPORTED',
      'spot',
    ],
    [
      'for one that is stopped already [pause-already-stopped]',
      { status: 'stopped' },
      'INVALID_STATUS',
      'stopped',
    ],
    ['for one that is terminated', { status: 'terminated' }, 'INVALID_STATUS', 'terminated'],
  ] as const)('%s', async (_, changes, code, text) => {
    const before = await deploy(market, changes);
    expect(await pause()).toMatchObject({ code, status: 400, message: expect.stringContaining(text) });
    await expectNothingChanged(before);
    expect(stops()).toBe(0);
  });

  it('where the stopped rate is undeterminable', async () => {
    const before = await deploy(market);
    market.provider.catalog.offers.clear();
    expect(await pause()).toMatchObject({ code: 'PROVIDER_REFUSED', status: 502 });
    await expectNothingChanged(before);
    expect(stops()).toBe(0);
  });
});

it('a stop replaces a change that never showed', async () => {
  await deploy(market, { action: intent('restart', { since: market.clock.now() - 3_600_000 }) });
  expect(await pause()).toMatchObject({ status: 'stopped' });
});

describe('an unclear answer to a stop', () => {
  const unclear = new ProviderError('failed', '500', { status: 500, mayHaveHappened: true });

  it.each([
    ['a lost one, after the stop was taken', 'commit-then-lose'],
    ['a 500, after the stop was taken', { commitThenError: unclear }],
    ['a late stop', { lateMs: 12_000 }],
  ] as const)('is awaited: %s [pause-unsettled-answer]', async (_, fault) => {
    await deploy(market);
    market.plain.faults.plan = (method) => (method === 'stopInstance' ? fault : 'none');
    expect(await pause()).toMatchObject({ status: 'stopped' });
    expect(stops()).toBe(1);
  });

  it.each([500, 504])(
    'does not prove a refusal while the stop may still wait at the provider: a %s, and it stops later [stop-queued-behind-gateway]',
    async (status) => {
      const { providerInstanceId } = await deploy(market);
      const error = new ProviderError('failed', String(status), { status, mayHaveHappened: true });
      market.plain.faults.plan = (method) => (method === 'stopInstance' ? { error } : 'none');
      market.clock.setTimer(5_000, () => market.plain.stop(providerInstanceId ?? ''));
      expect(await pause()).toMatchObject({ status: 'stopped' });
      expect(stops()).toBe(1);
    },
  );

  it('completes the stop where the machine is already stopped at the provider', async () => {
    const { providerInstanceId } = await deploy(market);
    market.plain.set(providerInstanceId ?? '', { status: 'STOPPED' });
    expect(await pause()).toMatchObject({ status: 'stopped' });
    expect(stops()).toBe(1);
  });

  it('is a 504 where the provider does not answer at all: the change stays pending', async () => {
    await deploy(market);
    market.plain.faults.plan = (method) =>
      method === 'stopInstance' || method === 'getInstance' ? { error: unclear } : 'none';
    expect(await pause()).toMatchObject({
      code: 'PROVIDER_SLOW',
      status: 504,
      message:
        'provider-x answered 500 to the stop, so it may or may not happen; poll the deployment instead of retrying.',
    });
    expect((await read(market)).action).toMatchObject({ kind: 'pause', attempt: 1, answer: 500 });
    expect(stops()).toBe(1);
  });
});

it('a stop is a 504, not a refusal, where it does not show in its time and the request still waits [pause-awaited-long]', async () => {
  await deploy(market);
  market.plain.faults.plan = (method) => (method === 'stopInstance' ? 'lose' : 'none');
  const deps = { ...market.deps, options: { ...market.deps.options, lifecycleWaitMs: 90_000 } };
  const asked = pauseDeployment(deps, caller, 'dep-1');
  expect(await outcomeOf(market.clock, asked)).toMatchObject({ code: 'PROVIDER_SLOW', status: 504 });
});

it('a stop is a 504 after the time that a request waits, and a later poll ends it at the actual time [pause-timeout]', async () => {
  await market.close();
  market = await openMarket({ stopMs: 60_000 });
  const { providerInstanceId } = await deploy(market);
  const begunAt = market.clock.now();
  expect(await pause()).toMatchObject({
    code: 'PROVIDER_SLOW',
    status: 504,
    message: expect.stringMatching(/^provider-x has accepted the stop and has not finished it yet; poll/),
  });
  expect(market.clock.now() - begunAt).toBeLessThan(22_000);
  expect(await pause()).toMatchObject({ code: 'CHANGE_IN_PROGRESS', status: 409 });
  expect(stops()).toBe(1);
  await market.clock.advance(60_000);
  const instance = market.plain.get(providerInstanceId ?? '');
  await applyObservation(market.deps, await read(market), { instance }, market.clock.now());
  expect(await read(market)).toMatchObject({ status: 'stopped', action: null, pausedAt: begunAt + 60_000 });
});

it('a stop keeps waiting through answers without information', async () => {
  await deploy(market);
  const answers = Object.values(unreadableAnswers);
  market.plain.faults.plan = (method, nth) => {
    const answer = method === 'getInstance' ? answers[nth - 1] : undefined;
    return answer === undefined || nth > 5 ? 'none' : { error: answer() };
  };
  expect(await pause()).toMatchObject({ status: 'stopped' });
});

it('a stop is refused with INVALID_STATUS where the deployment is terminated meanwhile', async () => {
  await deploy(market);
  const pausing = pauseDeployment(market.deps, caller, 'dep-1');
  pausing.catch(() => undefined);
  await market.clock.advance(1_000);
  await terminateDeployment(market.deps, caller, 'dep-1');
  expect(await outcomeOf(market.clock, pausing)).toMatchObject({ code: 'INVALID_STATUS' });
  expect(await read(market)).toMatchObject({ status: 'terminated', action: null });
});

it('stops only once where two requests come at the same time', async () => {
  await deploy(market);
  const both = await Promise.all([pause(), pause()]);
  expect(both.map((it) => (it instanceof ApiError ? it.code : it)).sort()).toEqual([
    'CHANGE_IN_PROGRESS',
    expect.objectContaining({ status: 'stopped' }),
  ]);
  expect(stops()).toBe(1);
});
