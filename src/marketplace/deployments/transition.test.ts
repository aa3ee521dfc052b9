import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { discount, intent, sshKey, volume } from '../../../test/support/rows/marketplace-rows.ts';
import { IllegalTransition } from '../../contract/transitions.ts';
import { type DeploymentStatus, deploymentStatuses, deploymentTransitions } from '../contract/deployment.ts';
import { BillingJob } from '../ledger/billing-job.ts';
import type { DeploymentRecord } from '../model/deployment-record.ts';
import { toAttachment } from '../model/volume-record.ts';
import type { CatalogOffer } from '../providers/provider.ts';
import { createEnforcement } from './enforcement.ts';
import { deploy, type Market, openMarket, read } from './market.fixture.ts';
import { type Move, reprice, type TransitionDeps, transition } from './transition.ts';

let market: Market;
beforeEach(async () => {
  market = await openMarket();
});
afterEach(() => market.store.close());

const launching = { state: 'made', request: null, sentAt: 0 } as const;

async function move(id: string, change: Move, deps: TransitionDeps = market.deps): Promise<DeploymentRecord> {
  return market.store.transact(async (tx) => {
    const record = await tx.deployments.byId(id);
    if (record === null) throw new Error(`there is no ${id}`);
    return transition(deps, tx, record, change);
  });
}

/** A deployment whose instance exists but does not run yet. */
async function deploying(changes: Partial<DeploymentRecord> = {}): Promise<string> {
  const { id } = await deploy(market, {
    status: 'deploying',
    startedAt: null,
    ipAddress: null,
    observedAt: market.clock.now(),
    ...changes,
  });
  return id;
}

const billed = async (id: string, since: number) =>
  (await market.store.read.ledger.segmentsOf('deployment', id)).map(
    ({ state, rateMicroUsdPerHour: rate, startedAt, endedAt }) =>
      `${state} ${rate} ${startedAt - since}–${endedAt === null ? '' : endedAt - since}`,
  );

const illegal = deploymentStatuses.flatMap((from) =>
  deploymentStatuses.flatMap((to) => (deploymentTransitions[from].includes(to) ? [] : [[from, to] as const])),
);

it.each(illegal)(
  'refuses to go from %s to %s, and writes nothing [illegal-transition-refused]',
  async (from, to) => {
    const { id } = await deploy(market, { status: from });
    const before = await read(market, id);
    await expect(move(id, { to, at: market.clock.now() })).rejects.toThrow(IllegalTransition);
    expect(await read(market, id)).toEqual(before);
  },
);

describe('the times and the bill', () => {
  it('of a parked spot machine without a price are zero, and an alarm says what to do', async () => {
    const alarms: string[] = [];
    const log = { ...market.deps.log, error: (_: object, message: string) => void alarms.push(message) };
    const offer = market.provider.catalog.offers.get('gpu-spot') as CatalogOffer;
    market.provider.catalog.offers.set('gpu-spot', { ...offer, stoppedPriceMicroUsdPerHour: null });
    const { id } = await deploy(market, { offerId: 'gpu-spot', instanceType: 'SPOT' });
    const parked = await move(id, { to: 'stopped', at: market.clock.now() }, { ...market.deps, log });
    expect(parked).toMatchObject({ status: 'stopped', stoppedRateMicroUsd: 0 });
    expect(alarms).toEqual([expect.stringContaining('set stopped_price_per_hour')]);
  });

  it('of a stop before a discount that is shown already follow the discount too [stop-before-discount]', async () => {
    const { store, clock, deps } = market;
    const id = await deploying();
    const since = clock.now();
    await move(id, { to: 'running', at: since });
    await clock.advance(10 * 60_000);
    await store.transact((tx) =>
      tx.discounts.insert(discount({ percentage: 5, startsAt: since + 5 * 60_000 })),
    );
    const billing = new BillingJob({ ...deps, enforce: createEnforcement(deps) });
    await billing.run();
    expect(await read(market, id)).toMatchObject({ discountPercentage: 5 });
    // A late observation: it was already stopped when the discount began.
    await move(id, { to: 'stopped', at: since + 60_000, fields: { observedAt: clock.now() } });
    await clock.advance(3_600_000);
    const stopped = await read(market, id);
    await store.transact((tx) => tx.deployments.update({ ...stopped, observedAt: clock.now() }));
    await billing.run();
    const { stoppedRateMicroUsd, rateMicroUsd } = await read(market, id);
    expect([rateMicroUsd, stoppedRateMicroUsd]).toEqual([1_900_000, 475_000]);
    expect((await store.read.ledger.openSegmentOf('deployment', id))?.rateMicroUsdPerHour).toBe(475_000);
  });

  it('of stops and starts add up, and each has its own price [times-and-bill-add-up]', async () => {
    const id = await deploying();
    const since = market.clock.now();
    const at = (ms: number) => since + ms;
    expect(await move(id, { to: 'running', at: at(0) })).toMatchObject({ startedAt: since, pausedAt: null });
    expect(await move(id, { to: 'stopped', at: at(1_000) })).toMatchObject({
      ...{
        pausedAt: at(1_000),
        pausedMs: 0,
        stoppedRateMicroUsd: 500_000,
        originalStoppedRateMicroUsd: 500_000,
      },
    });
    expect(await move(id, { to: 'running', at: at(3_000) })).toMatchObject({
      pausedAt: null,
      pausedMs: 2_000,
      startedAt: since,
      stoppedRateMicroUsd: 500_000,
    });
    await move(id, { to: 'stopped', at: at(4_000) });
    expect(await move(id, { to: 'terminated', at: at(9_000) })).toMatchObject({
      pausedAt: null,
      pausedMs: 7_000,
      stoppedAt: at(9_000),
      status: 'terminated',
    });
    expect(await billed(id, since)).toEqual([
      'running 2000000 0–1000',
      'stopped 500000 1000–3000',
      'running 2000000 3000–4000',
      'stopped 500000 4000–9000',
    ]);
  });

  it('never go back before the last confirmation', async () => {
    const { id, observedAt } = await deploy(market);
    const ended = await move(id, { to: 'terminated', at: 0 });
    expect(ended).toMatchObject({ stoppedAt: observedAt, observedAt });
  });

  it('follow the discount of the team', async () => {
    await market.store.transact((tx) => tx.discounts.insert(discount({ percentage: 25, startsAt: 0 })));
    const id = await deploying();
    const since = market.clock.now();
    const fields = { rateMicroUsd: 1_500_000, originalRateMicroUsd: 2_000_000, discountPercentage: 25 };
    expect(await move(id, { to: 'running', at: since })).toMatchObject(fields);
    expect(await move(id, { to: 'stopped', at: since + 1 })).toMatchObject({
      ...fields,
      stoppedRateMicroUsd: 375_000,
      originalStoppedRateMicroUsd: 500_000,
    });
  });

  it('use a new price of a spot instance from the time that it was observed', async () => {
    const id = await deploying({ instanceType: 'SPOT' });
    const since = market.clock.now();
    await move(id, { to: 'running', at: since });
    const record = await market.store.transact(async (tx) => {
      const running = (await tx.deployments.byId(id)) as DeploymentRecord;
      return reprice(
        market.deps,
        tx,
        running,
        { originalRateMicroUsd: 3_000_000, providerRateMicroUsd: 3_000_000 },
        since + 500,
      );
    });
    expect(record).toMatchObject({
      originalRateMicroUsd: 3_000_000,
      rateMicroUsd: 3_000_000,
      status: 'running',
    });
    expect(await billed(id, since)).toEqual(['running 2000000 0–500', 'running 3000000 500–']);
  });

  it('of a stop without an announced price are zero', async () => {
    market.provider.catalog.offers.clear();
    const id = await deploying();
    const since = market.clock.now();
    await move(id, { to: 'running', at: since });
    await move(id, { to: 'stopped', at: since + 1 });
    expect((await billed(id, since)).at(-1)).toBe('stopped 0 1–');
  });

  it('of a stop are those quoted to the request, else those of the offer when it was deployed', async () => {
    market.provider.catalog.offers.clear();
    const extras = { berth: { stopped_price_per_hour: 0.25 } };
    const id = await deploying({ extras });
    const since = market.clock.now();
    await move(id, { to: 'running', at: since });
    expect((await move(id, { to: 'stopped', at: since + 1 })).stoppedRateMicroUsd).toBe(250_000);
    await move(id, { to: 'running', at: since + 2 });
    const fields = { originalStoppedRateMicroUsd: 125_000 };
    expect((await move(id, { to: 'stopped', at: since + 3, fields })).stoppedRateMicroUsd).toBe(125_000);
  });
});

describe('an end', () => {
  it.each<[DeploymentStatus, DeploymentRecord['launch']['state'], DeploymentRecord['cleanup']]>([
    ['deploying', 'wanted', 'none'],
    ['deploying', 'sent', 'wanted'],
    ['deploying', 'made', 'wanted'],
    ['running', 'made', 'wanted'],
  ])('of one that is %s, its create %s: the clean-up is %s', async (status, state, cleanup) => {
    const { id } = await deploy(market, { status, launch: { ...launching, state } });
    const ended = await move(id, {
      to: 'failed',
      at: market.clock.now(),
      fields: { failureDetails: 'no\nluck' },
    });
    expect(ended).toMatchObject({
      cleanup,
      launch: { state: 'over', request: null },
      failureDetails: 'no luck',
    });
  });

  it('releases the temporary key, the volumes and the change in progress', async () => {
    const suspicion = { status: 'STOPPED', since: 0, polls: 1 } as const;
    const { id } = await deploy(market, {
      tempSshKeyId: 'ssh-temp',
      suspicion,
      action: intent('restart', { since: 0 }),
    });
    await market.store.transact(async (tx) => {
      await tx.sshKeys.insert(sshKey({ id: 'ssh-temp', isTemporary: true }));
      await tx.volumes.insert(volume({ id: 'vol-9', providerId: 'provider-x', status: 'attached' }));
      await tx.volumes.putAttachment(toAttachment({ id: 'vol-9' }, id, null));
    });
    const ended = await move(id, { to: 'terminated', at: market.clock.now() });
    expect(ended).toMatchObject({ action: null, suspicion: null, tempSshKeyId: 'ssh-temp' });
    expect(await market.store.read.sshKeys.byId('ssh-temp')).toBeNull();
    const attachments = await market.store.read.volumes.attachmentsOf({ deploymentId: id });
    expect(attachments.filter(({ state }) => state === 'attached')).toEqual([]);
  });
});

describe('mail', () => {
  const kinds = async () => (await market.store.read.mail.list({ limit: 9 })).map(({ kind }) => kind);

  it('mails once that the deployment is ready, and not after a resume', async () => {
    const id = await deploying();
    const at = market.clock.now();
    await move(id, { to: 'running', at });
    await move(id, { to: 'stopped', at: at + 1 });
    await move(id, { to: 'running', at: at + 2 });
    expect(await kinds()).toEqual(['deployment_ready']);
  });

  it('mails that the deployment failed, and not that its user ended it', async () => {
    const id = await deploying();
    await move(id, { to: 'failed', at: market.clock.now(), fields: { failureReason: 'provider_lost' } });
    expect(await kinds()).toEqual(['deployment_failed']);
    const { id: other } = await deploy(market, { id: 'dep-2', providerName: 'bm-test-2' });
    await move(other, { to: 'terminated', at: market.clock.now() });
    expect(await kinds()).toEqual(['deployment_failed']);
  });
});
