import { afterEach, beforeEach, expect, it } from 'vitest';
import { discount } from '../../../test/support/rows/marketplace-rows.ts';
import { microUsdFromUsd } from '../../contract/values.ts';
import { stopQuoteSchema } from '../contract/deployment.ts';
import type { CatalogOffer } from '../providers/provider.ts';
import { pauseDeployment, quotePause } from './lifecycle.ts';
import { caller, deploy, type Market, openMarket, outcomeOf, read } from './market.fixture.ts';

let market: Market;
beforeEach(async () => {
  market = await openMarket();
});
afterEach(() => market.close());

const quote = (by = caller, id = 'dep-1') => quotePause(market.deps, by, id);

it('shows the stopped and the running rate, without a change or a call to the provider [pause-quote-rates]', async () => {
  const before = await deploy(market);
  const quoted = await quote();
  expect(stopQuoteSchema.parse(quoted)).toEqual(quoted);
  expect(quoted).toEqual({
    hourlyRate: 0.5,
    originalHourlyRate: 0.5,
    currentHourlyRate: 2,
    breakdown: [{ label: 'Disk of 512.5 GB, kept', amount: 0.5 }],
  });
  expect(await read(market)).toEqual(before);
  expect(market.plain.faults.calls).toEqual([]);
});

it.each([5, 7, 13, 33, 50])(
  'breaks the rate down without a micro-USD left over, at %i %% [pause-quote-breakdown]',
  async (percentage) => {
    await deploy(market);
    const { offers } = market.provider.catalog;
    offers.set('gpu-1', { ...(offers.get('gpu-1') as CatalogOffer), stoppedPriceMicroUsdPerHour: 123_457 });
    await market.store.transact((tx) => tx.discounts.insert(discount({ percentage, startsAt: 0 })));
    const { hourlyRate, originalHourlyRate, breakdown } = await quote();
    expect(originalHourlyRate).toBe(0.123457);
    expect(hourlyRate).toBeLessThan(originalHourlyRate);
    const sum = breakdown.reduce((total, { amount }) => total + microUsdFromUsd(amount), 0);
    expect(sum).toBe(microUsdFromUsd(hourlyRate));
    expect(breakdown.map(({ label }) => label)).toContain(`Discount of ${percentage} %`);
  },
);

it.each([
  [
    'a machine type that cannot be stopped',
    { offerId: 'gpu-spot', instanceType: 'SPOT' },
    'ACTION_UNSUPPORTED',
  ],
  ['one that is stopped', { status: 'stopped' }, 'INVALID_STATUS'],
  ['one that is deploying', { status: 'deploying' }, 'INVALID_STATUS'],
] as const)('a quote is a 400 for %s [pause-quote-refused]', async (_, changes, code) => {
  await deploy(market, changes);
  await expect(quote()).rejects.toMatchObject({ code, status: 400 });
});

it('the stopped rate comes from the profile where the provider announces no price, and the stop is billed at it', async () => {
  await deploy(market);
  const { catalog, profile } = market.provider;
  const offer = catalog.offers.get('gpu-1') as CatalogOffer;
  catalog.offers.set('gpu-1', { ...offer, stoppedPriceMicroUsdPerHour: null });
  await expect(quote()).rejects.toMatchObject({ code: 'ACTION_UNSUPPORTED' });
  market.provider.profile = {
    ...profile,
    machines: [...profile.machines, { stopped_price_per_hour: 0.07 }],
  };
  expect(await quote()).toMatchObject({ hourlyRate: 0.07 });
  const paused = outcomeOf(market.clock, pauseDeployment(market.deps, caller, 'dep-1'));
  expect(await paused).toMatchObject({ status: 'stopped', stoppedHourlyRate: 0.07 });
});

it('a quote is a 502 where the stopped rate is not known: the provider does not list the offer now [stopped-rate-undeterminable]', async () => {
  await deploy(market);
  market.provider.catalog.offers.clear();
  await expect(quote()).rejects.toMatchObject({ code: 'PROVIDER_REFUSED', status: 502 });
});
