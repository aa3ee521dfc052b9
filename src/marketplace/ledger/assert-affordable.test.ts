import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  intent,
  runningDeployment,
  segment,
  teamId,
  userId,
  volume,
} from '../../../test/support/rows/marketplace-rows.ts';
import type { ApiError } from '../contract/errors.ts';
import { createDeployment } from '../deployments/create.ts';
import { resumeDeployment } from '../deployments/lifecycle.ts';
import { deploy, type Market, openMarket, wanted } from '../deployments/market.fixture.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import type { MarketplaceOptions } from '../model/options.ts';
import type { VolumeRecord } from '../model/volume-record.ts';
import { assertAffordable } from './assert-affordable.ts';
import { adjust, grant } from './credit.ts';

/** gpu-1 costs 2 USD per hour, and the account minimum is 20 minutes. */
const HOUR_OF_GPU = 2_000_000;
const caller = { userId };

let market: Market;

beforeEach(async () => {
  market = await openMarket();
});
afterEach(() => market.close());

/** Sets the team's balance. */
async function setBalance(amountMicroUsd: number): Promise<void> {
  const team = await market.store.read.teams.byId(teamId);
  const change = amountMicroUsd - (team?.balanceMicroUsd ?? 0);
  if (change !== 0) await adjust(market.deps, { teamId, amountMicroUsd: change, reason: 'test' });
}

function withSpending(changes: Partial<MarketplaceOptions['spending']>): void {
  const { options } = market.deps;
  market.deps.options = { ...options, spending: { ...options.spending, ...changes } };
}

const create = (body: object = wanted) => createDeployment(market.deps, caller, body as never);

function reasonOf(error: ApiError) {
  return [error.status, error.details?.['reason']];
}

async function outcomes(
  creates: readonly Promise<unknown>[],
): Promise<{ made: number; refused: ApiError[] }> {
  const settled = await Promise.allSettled(creates);
  const refused = settled.flatMap((it) => (it.status === 'rejected' ? [it.reason as ApiError] : []));
  return { made: settled.length - refused.length, refused };
}

describe('a deployment', () => {
  it('is refused with a balance of one cent, and the error shows the needed and the actual balance', async () => {
    await setBalance(10_000);
    const error = await create().catch((it: ApiError) => it);
    expect(error).toMatchObject({
      code: 'VALIDATION_ERROR',
      status: 400,
      message:
        'The team has $0.01 but needs $2.00: 1 hour of its current costs ($0.00 per hour) plus this one ' +
        '($2.00 per hour). Top up the balance, or end a deployment or volume first.',
      details: {
        reason: 'insufficient_balance',
        balance: 0.01,
        needed: 2,
        hours: 1,
        currentHourlyRate: 0,
        newHourlyRate: 2,
      },
    });
    expect(await market.store.read.deployments.list({ teamIds: [teamId] })).toEqual([]);
  });

  it('needs one hour of its price, to the micro-dollar', async () => {
    await setBalance(HOUR_OF_GPU - 1);
    await expect(create()).rejects.toMatchObject({ details: { reason: 'insufficient_balance' } });
    await setBalance(HOUR_OF_GPU);
    await expect(create()).resolves.toMatchObject({ status: 'deploying' });
  });

  it('needs its minimum rental where that is longer than an hour', async () => {
    const metal = { ...wanted, offerId: 'metal-1', gpuCount: 8 };
    const price = market.provider.catalog.offers.get('metal-1')?.priceMicroUsdPerHour ?? 0;
    await setBalance(24 * price - 1);
    expect(await create(metal).catch((it: ApiError) => it.details)).toMatchObject({ hours: 24 });
    await setBalance(24 * price);
    await expect(create(metal)).resolves.toMatchObject({ status: 'deploying' });
  });

  it('needs its price for the configured number of hours', async () => {
    withSpending({ balanceForMs: 5 * 3_600_000 });
    await setBalance(5 * HOUR_OF_GPU - 1);
    expect(await create().catch((it: ApiError) => it.details)).toMatchObject({ hours: 5, needed: 10 });
    await setBalance(5 * HOUR_OF_GPU);
    await expect(create()).resolves.toMatchObject({ status: 'deploying' });
  });

  it('counts another deployment that is still being deployed and not billed yet', async () => {
    await setBalance(2 * HOUR_OF_GPU - 1);
    await create();
    expect(await create().catch((it: ApiError) => it.details)).toMatchObject({ currentHourlyRate: 2 });
    await grant(market.deps, { teamId, amountMicroUsd: 1 });
    await expect(create()).resolves.toMatchObject({ status: 'deploying' });
  });

  it('is created only as often as the balance allows where fifty are requested at once', async () => {
    await setBalance(3 * HOUR_OF_GPU + 1_999_999);
    const { made, refused } = await outcomes(Array.from({ length: 50 }, () => create()));
    expect(made).toBe(3);
    expect(refused.map(reasonOf)).toEqual(new Array(47).fill([400, 'insufficient_balance']));
    expect(await market.store.read.deployments.list({ teamIds: [teamId] })).toHaveLength(3);
  });
});

describe('a resume', () => {
  const stopped = (changes: Partial<DeploymentRecord> = {}) =>
    deploy(market, {
      status: 'stopped',
      pausedAt: market.clock.now(),
      originalStoppedRateMicroUsd: 500_000,
      stoppedRateMicroUsd: 500_000,
      ...changes,
    });

  it('needs an hour of the running price, in place of the stopped one', async () => {
    await stopped();
    await setBalance(HOUR_OF_GPU - 1);
    await expect(resumeDeployment(market.deps, caller, 'dep-1')).rejects.toMatchObject({
      details: { reason: 'insufficient_balance', needed: 2, currentHourlyRate: 0, newHourlyRate: 2 },
    });
    expect((await market.store.read.deployments.byId('dep-1'))?.action).toBeNull();
  });

  it('is begun once where two are requested at once and the balance covers one', async () => {
    await stopped();
    await market.store.transact((tx) =>
      tx.deployments.insert(
        runningDeployment({
          id: 'dep-2',
          status: 'stopped',
          providerId: 'provider-x',
          region: 'eu-one',
          offerId: 'gpu-1',
          pausedAt: market.clock.now(),
          providerInstanceId: 'inst-2',
          originalStoppedRateMicroUsd: 500_000,
          stoppedRateMicroUsd: 500_000,
        }),
      ),
    );
    // Enough for one hour of one deployment at 2 USD and the other at 0.5 USD.
    await setBalance(2_500_000);
    market.plain.faults.plan = () => 'hang';
    const resumes = ['dep-1', 'dep-2'].map((id) => resumeDeployment(market.deps, caller, id));
    const settled = Promise.allSettled(resumes);
    for (let second = 0; second < 60; second++) await market.clock.advance(1_000);
    const results = (await settled).map((it) => (it.status === 'rejected' ? it.reason.code : it.status));
    expect(results.toSorted()).toEqual(['PROVIDER_SLOW', 'VALIDATION_ERROR']);
  });
});

describe('the committed costs of a team', () => {
  const asking = async (rateMicroUsd = 0): Promise<unknown> =>
    assertAffordable(market.deps, market.store.read, { teamId, rateMicroUsd }, market.clock.now()).then(
      () => 'enough',
      (error: ApiError) => error.details?.['currentHourlyRate'],
    );

  const put = (...records: (DeploymentRecord | VolumeRecord)[]) =>
    market.store.transact(async (tx) => {
      for (const record of records)
        if ('sizeGb' in record) await tx.volumes.insert(record);
        else await tx.deployments.insert(record);
    });

  it.each<[string, DeploymentRecord | VolumeRecord, number]>([
    ['a running deployment', runningDeployment(), 2],
    ['a running deployment that is being stopped', runningDeployment({ action: intent('pause') }), 2],
    [
      'a deploying deployment',
      runningDeployment({ status: 'deploying', startedAt: null, observedAt: null }),
      2,
    ],
    [
      'a stopped deployment',
      runningDeployment({ status: 'stopped', originalStoppedRateMicroUsd: 300_000 }),
      0.3,
    ],
    [
      'a stopped deployment that is being started',
      runningDeployment({
        status: 'stopped',
        originalStoppedRateMicroUsd: 300_000,
        action: intent('resume'),
      }),
      2,
    ],
    ['nothing for a failed deployment', runningDeployment({ status: 'failed', stoppedAt: 1 }), 0],
    ['nothing for a terminated deployment', runningDeployment({ status: 'terminated', stoppedAt: 1 }), 0],
    ['a volume', volume(), 0.01],
    ['a volume that is being created', volume({ status: 'creating', startedAt: null }), 0.01],
    ['a volume that is being resized', volume({ action: { ...intent('resize'), toSizeGb: 300 } }), 0.03],
    ['a volume that broke after its creation', volume({ status: 'error' }), 0.01],
    ['nothing for a volume that never existed', volume({ status: 'error', startedAt: null }), 0],
    ['nothing for a broken volume that is gone', volume({ status: 'error', deletedAt: 1 }), 0],
    ['nothing for a volume that is being deleted', volume({ status: 'deleting', deletedAt: 1 }), 0],
    ['nothing for a deleted volume', volume({ status: 'deleted', deletedAt: 1 }), 0],
  ])('include %s', async (_what, record, usdPerHour) => {
    await put(record);
    expect(await asking(1_000_000_000_000)).toBe(usdPerHour);
  });

  it('use the current discount; a volume keeps its locked one while the team has one as good', async () => {
    await put(runningDeployment(), volume({ discountPercentage: 20, rateMicroUsd: 8_000 }));
    const startsAt = market.clock.now();
    await market.store.transact((tx) =>
      tx.discounts.insert({
        id: 'disc-1',
        teamId,
        source: 'admin',
        percentage: 20,
        startsAt,
        endsAt: startsAt + 1_000,
      }),
    );
    expect(await asking(1_000_000_000_000)).toBe(1.608);
    await market.clock.advance(1_000);
    expect(await asking(1_000_000_000_000)).toBe(2.01);
  });

  it('are charged to the balance up to now before the check', async () => {
    const at = market.clock.now();
    await put(volume({ originalRateMicroUsd: 1_000_000, rateMicroUsd: 1_000_000 }));
    await market.store.transact((tx) =>
      tx.ledger.insertSegment(
        segment({
          subjectKind: 'volume',
          subjectId: 'vol-1',
          state: 'stored',
          startedAt: at,
          postedUntil: at,
          rateMicroUsdPerHour: 1_000_000,
          originalRateMicroUsdPerHour: 1_000_000,
        }),
      ),
    );
    await setBalance(2_000_000);
    await market.clock.advance(3_600_000);
    expect(await asking()).toBe('enough');
    await market.clock.advance(4);
    expect(await asking()).toBe(1);
  });
});

describe('a team has at most', () => {
  it('the configured number of deployments, also where more are requested at once', async () => {
    withSpending({ teamLimits: { deployments: 2, volumes: null, volumeGb: null } });
    const { made, refused } = await outcomes(Array.from({ length: 5 }, () => create()));
    expect(made).toBe(2);
    expect(refused.map(reasonOf)).toEqual(new Array(3).fill([400, 'quota_exceeded']));
    expect(refused[0]?.message).toBe(
      'The team has 2 active deployments of at most 2; this would add 1. End or delete ' +
        'some first, or ask for a higher limit.',
    );
  });

  it('50 deployments by default', async () => {
    await setBalance(200 * HOUR_OF_GPU);
    const { made } = await outcomes(Array.from({ length: 60 }, () => create()));
    expect(made).toBe(50);
  });
});
