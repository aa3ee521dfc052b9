import { expect, it } from 'vitest';
import { marketplaceConfigSchema } from '../../config/marketplace/schema.ts';
import { defaultOptions } from '../../marketplace/model/options.ts';
import { toMarketplaceOptions, toMarkups } from './options.ts';

const provider = { id: 'provider-a', base_url: 'https://gpu.example.com/v1', api_key_env: 'KEY' };

function markupOf(markup: unknown) {
  return marketplaceConfigSchema.safeParse({ providers: [{ ...provider, markup }] });
}

it('uses the defaults of the configuration', () => {
  expect(toMarketplaceOptions(marketplaceConfigSchema.parse({}))).toEqual(defaultOptions);
});

it('takes the hours, the limits of a team and the days of its volumes from the configuration', () => {
  const config = marketplaceConfigSchema.parse({
    team_limits: { deployments: 3, volumes: null, volume_gb: 500 },
    billing: { required_hours: 6, volumes_kept_days: 30 },
  });
  const { spending, billing } = toMarketplaceOptions(config);
  expect(spending).toEqual({
    balanceForMs: 6 * 3_600_000,
    teamLimits: { deployments: 3, volumes: null, volumeGb: 500 },
  });
  expect(billing.zeroBalance.volumes).toMatchObject({ keepMs: 30 * 86_400_000 });
  expect(marketplaceConfigSchema.safeParse({ billing: { required_hours: 0.5 } }).success).toBe(false);
});

it('takes a markup in percent or as an amount, of a provider and of its offers', () => {
  const markup = { percent: 12.34, offers: { big: { usd_per_hour: 0.25 }, small: { percent: 0.07 } } };
  const parsed = markupOf(markup);
  expect(toMarkups(parsed.data?.providers[0]?.markup)).toEqual({
    all: { basisPoints: 1_234 },
    offers: new Map([
      ['big', { microUsdPerHour: 250_000 }],
      ['small', { basisPoints: 7 }],
    ]),
  });
});

it.each([
  { percent: 5, usd_per_hour: 1 },
  { offers: { big: {} } },
  { offers: { big: { percent: 5, usd_per_hour: 1 } } },
  { percent: -1 },
  { percent: 1.234 },
  { per_cent: 5 },
])('refuses the markup %j', (markup) => {
  expect(markupOf(markup).success).toBe(false);
});
