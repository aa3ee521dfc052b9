import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { now, runningDeployment } from '../../../test/support/rows/marketplace-rows.ts';
import { deploymentSchema } from '../contract/deployment.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { type Market, openMarket } from './market.fixture.ts';
import { showDeployment, toDeployment } from './to-deployment.ts';

let market: Market;
beforeEach(async () => {
  market = await openMarket();
});
afterEach(() => market.close());

const HOUR = 3_600_000;
const show = (changes: Partial<DeploymentRecord> = {}, at = now) =>
  toDeployment(
    runningDeployment({ providerId: 'provider-x', offerId: 'gpu-1', region: 'eu-one', ...changes }),
    market.deps.providers,
    at,
    changes.totalCostMicroUsd ?? 0,
  );

it('shows every field of M: that a deployment always has [deployment-fields]', () => {
  const deployment = show();
  expect(deploymentSchema.parse(deployment)).toEqual(deployment);
  const optional = ['extras', 'failureReason', 'failureDetails'];
  expect(Object.keys(deployment).sort()).toEqual(
    Object.keys(deploymentSchema.shape)
      .filter((field) => !optional.includes(field))
      .sort(),
  );
});

it('keeps the composite of gpuType and offerId for old clients [deployment-composite-gpu-type]', () => {
  expect(show().gpuModelId).toBe('H100_gpu-1');
});

describe('the endpoint', () => {
  it('has a command once it runs [endpoint-command]', () => {
    expect(show({ sshPort: 2_222 })).toMatchObject({
      ipAddress: '192.0.2.1',
      user: 'ubuntu',
      sshPort: 2_222,
      sshCommand: 'ssh -p 2222 ubuntu@192.0.2.1',
    });
  });

  it('keeps the address while it is stopped, and hides the command [endpoint-while-stopped]', () => {
    expect(show({ status: 'stopped', pausedAt: now })).toMatchObject({
      ipAddress: '192.0.2.1',
      sshCommand: null,
    });
  });

  it('names the ports that lead to the machine [endpoint-ports]', () => {
    const portForwards = [{ internal_port: 22, external_port: 30_022 }];
    expect(show({ sshPort: 30_022, portForwards })).toMatchObject({ portForwards, sshPort: 30_022 });
  });

  it('has no command without a login user [endpoint-without-user]', () => {
    expect(show({ loginUser: null }).sshCommand).toBeNull();
  });
});

it('adds the current stop to the hours of past stops [stopped-hours]', () => {
  expect(show({ pausedMs: HOUR / 2 }, now + 9 * HOUR).totalPausedHours).toBe(0.5);
  const stopped = show({ status: 'stopped', pausedMs: HOUR / 2, pausedAt: now + HOUR }, now + 3 * HOUR);
  expect(stopped).toMatchObject({ totalPausedHours: 2.5, pausedAt: new Date(now + HOUR).toISOString() });
});

it('shows money in USD, exactly [deployment-money-exact]', () => {
  expect(
    show({
      totalCostMicroUsd: 1_234_567,
      originalRateMicroUsd: 2_000_001,
      rateMicroUsd: 1_800_001,
      discountPercentage: 10,
      stoppedRateMicroUsd: 100_000,
      lastCreditDeductionAt: now,
    }),
  ).toMatchObject({
    totalCost: 1.234567,
    originalHourlyRate: 2.000001,
    hourlyRate: 1.800001,
    discountPercentage: 10,
    hasDiscount: true,
    stoppedHourlyRate: 0.1,
    lastCreditDeduction: new Date(now).toISOString(),
  });
});

it('shows why it failed [failure-reason-shown]', () => {
  const failure = { failureReason: 'out_of_stock', failureDetails: 'Sold out.' } as const;
  expect(show({ status: 'failed', ...failure })).toMatchObject(failure);
});

describe('the capabilities of a deployment', () => {
  it.each([
    ['gpu-1', 'DEDICATED', [true, true, null]],
    ['gpu-spot', 'SPOT', [false, true, 'Provider X cannot stop spot instances.']],
    ['metal-1', 'BARE_METAL', [true, false, null]],
  ] as const)(
    'are narrowed by the machine type: %s [capabilities-by-machine-type]',
    (offerId, instanceType, expected) => {
      const { supportsPause, supportsRestart, pauseUnsupportedReason } = show({ offerId, instanceType });
      expect([supportsPause, supportsRestart, pauseUnsupportedReason]).toEqual(expected);
    },
  );

  it('are empty where its provider is no longer configured [capabilities-without-provider]', () => {
    expect(show({ providerId: 'provider-gone' })).toMatchObject({
      supportsPause: false,
      supportsRestart: false,
      pauseUnsupportedReason: expect.stringContaining('provider-gone'),
    });
  });
});

it('has extras on the single response alone [extras-on-single-response]', async () => {
  const extras = { deployment_type: 'vm', networking_type: 'shared' };
  const record = runningDeployment({ extras: { ...extras, berth: { stopped_price_per_hour: 0.5 } } });
  expect((await showDeployment(market.deps, record)).extras).toEqual(extras);
  expect(show()).not.toHaveProperty('extras');
});
