import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/clocks/virtual-clock.ts';
import { ProviderError } from '../../client/orchestrator-client.ts';
import type { Configuration } from '../../contract/configuration.ts';
import { CatalogFeed } from './catalog-feed.ts';
import { createProviders } from './create-providers.ts';
import { noMarkups } from './markup.ts';
import { configurationOf, gpuTypes, profileOf } from './offer.fixture.ts';
import type { ProviderProfile } from './profile.ts';

const down = () => Promise.reject(new ProviderError('timeout', 'GET /x: no whole answer within 10 ms'));

function setUp({ profile = profileOf() }: { profile?: ProviderProfile } = {}) {
  const clock = new VirtualClock();
  const logged: string[] = [];
  const note = (_: object, message: string) => void logged.push(message);
  const sold = {
    configurations: async (): Promise<Configuration[]> => [configurationOf()],
    available: async (): Promise<Configuration[]> => [configurationOf({ regions: ['eu-one'] })],
    locations: async () => [{ id: 'eu-one', name: 'EU One', types: ['ssd'], country_code: 'DE' }],
  };
  let refreshes = 0;
  const client = {
    listConfigurations: () => {
      refreshes++;
      return sold.configurations();
    },
    listAvailability: () => sold.available(),
    listVolumeLocations: () => sold.locations(),
  };
  const options = {
    ...{
      profile,
      client,
      clock,
      gpuTypes,
      markups: noMarkups,
      intervalMs: 30_000,
      random: { next: () => 0.5 },
    },
    log: { debug: note, info: note, warn: note, error: note },
  };
  const feed = new CatalogFeed(options);
  return { clock, logged, sold, feed, options, refreshes: () => refreshes };
}

describe('a catalog', () => {
  it('is empty until its provider was heard', () => {
    const { feed } = setUp();
    expect(feed).toMatchObject({ refreshedAt: null, offers: new Map() });
  });

  it('joins what is offered with where it can be deployed now, at the price of now', async () => {
    const { feed, sold, clock } = setUp();
    sold.available = async () => [configurationOf({ regions: ['us-two'], price_per_hour: 1.5 })];
    await feed.refresh();
    expect(feed.refreshedAt).toBe(clock.now());
    expect(feed.offers.get('h100-1x')).toMatchObject({
      regions: ['eu-one', 'us-two'],
      inStockRegions: ['us-two'],
      priceMicroUsdPerHour: 1_500_000,
    });
  });

  it('takes an offer that is not in /availability for sold out, and one that is only there for nothing', async () => {
    const { feed, sold } = setUp();
    sold.available = async () => [
      configurationOf({ available: false }),
      configurationOf({ id: 'never-published' }),
    ];
    await feed.refresh();
    expect([...feed.offers.values()]).toMatchObject([{ offerId: 'h100-1x', inStockRegions: [] }]);
  });

  it('keeps an offer that its provider withdrew, out of stock', async () => {
    const { feed, sold } = setUp();
    await feed.refresh();
    sold.configurations = async () => [];
    await feed.refresh();
    expect(feed.offers.get('h100-1x')).toMatchObject({
      isWithdrawn: true,
      inStockRegions: [],
      stoppedPriceMicroUsdPerHour: 500_000,
    });
    sold.configurations = async () => [configurationOf()];
    await feed.refresh();
    expect(feed.offers.get('h100-1x')?.isWithdrawn).toBeUndefined();
  });

  it('keeps one offer of two with the same id, and none with an absurd price', async () => {
    const { feed, sold } = setUp();
    sold.configurations = async () => [
      configurationOf({ id: 'absurd', price_per_hour: -1 }),
      configurationOf({ name: 'the first' }),
      configurationOf({ name: 'the second' }),
    ];
    await feed.refresh();
    expect([...feed.offers.values()].map(({ name }) => name)).toEqual(['the first']);
  });

  it.each(['configurations', 'available'] as const)('keeps what it had while %s fails', async (part) => {
    const { feed, sold, clock } = setUp();
    await feed.refresh();
    const { refreshedAt, offers } = feed;
    sold[part] = down;
    await clock.advance(60_000);
    await feed.refresh();
    expect(feed.refreshedAt).toBe(refreshedAt);
    expect(feed.offers).toBe(offers);
  });

  it('is the same map while nothing changes', async () => {
    const { feed, sold } = setUp();
    await feed.refresh();
    const { offers } = feed;
    await feed.refresh();
    expect(feed.offers).toBe(offers);
    sold.available = async () => [];
    await feed.refresh();
    expect(feed.offers).not.toBe(offers);
  });

  it('logs a problem once until it is over', async () => {
    const { feed, sold, logged } = setUp();
    const { available } = sold;
    sold.available = down;
    await feed.refresh();
    await feed.refresh();
    sold.available = available;
    await feed.refresh();
    await feed.refresh();
    expect(logged).toEqual([
      'provider-x: the catalog cannot be read: GET /x: no whole answer within 10 ms',
      'provider-x: the catalog is read without problems again',
    ]);
  });

  it('has volume locations where its profile has volumes, and is heard without them', async () => {
    const volumes = {
      size_gb: { min: 1, max: 100 },
      price_per_gb_hour: 0.1,
      name_max_length: 60,
      grow: true,
      max_per_instance: 1,
      shareable: false,
      attach_at_create: true,
      attach: { supported: true },
      detach: { allowed: 'always' },
      rename: true,
      regions: {},
    };
    const { feed, sold, clock } = setUp({ profile: { ...profileOf(), volumes } as ProviderProfile });
    await feed.refresh();
    const expected = [{ id: 'eu-one', name: 'EU One', types: ['ssd'], countryCode: 'DE' }];
    expect(feed.volumeLocations).toEqual(expected);
    sold.locations = down;
    await clock.advance(1000);
    await feed.refresh();
    expect(feed).toMatchObject({ volumeLocations: expected, refreshedAt: clock.now() });

    const without = setUp();
    without.sold.locations = down;
    await without.feed.refresh();
    expect(without.logged).toEqual([]);
  });
});

describe('the refreshing', () => {
  it('goes on at its interval, and ends', async () => {
    const { feed, clock, refreshes } = setUp();
    feed.start();
    feed.start();
    await clock.advance(0);
    expect(refreshes()).toBe(1);
    await clock.advance(90_000);
    expect(refreshes()).toBe(4);
    await feed.stop();
    await clock.advance(90_000);
    expect(refreshes()).toBe(4);
    expect(clock.pendingTimers).toBe(0);
  });

  it('has jitter', async () => {
    const { options, clock, refreshes } = setUp();
    const feed = new CatalogFeed({ ...options, random: { next: () => 0 } });
    feed.start();
    await clock.advance(22_500);
    expect(refreshes()).toBe(2);
    await feed.stop();
  });

  it('waits for a provider that hangs, and for nobody else’s [catalog-refresh-hangs]', async () => {
    const { options, clock } = setUp();
    const hanging = Promise.withResolvers<Configuration[]>();
    const client = (list: () => Promise<Configuration[]>) =>
      ({ ...options.client, listConfigurations: list, close: async () => hanging.resolve([]) }) as never;
    const providers = createProviders({
      ...options,
      catalogMs: 30_000,
      providers: [
        { profile: profileOf({}, 'provider-a'), client: client(() => hanging.promise), sshProbe: null },
        {
          profile: profileOf({}, 'provider-b'),
          client: client(async () => [configurationOf()]),
          sshProbe: null,
        },
      ],
    });
    providers.start();
    await clock.advance(60_000);
    expect(providers.get('provider-a')?.catalog.refreshedAt).toBeNull();
    expect(providers.get('provider-b')?.catalog.refreshedAt).toBe(clock.now());
    expect(providers.ids()).toEqual(['provider-a', 'provider-b']);
    await providers.close();
    expect(clock.pendingTimers).toBe(0);
  });

  it('refuses two providers of one id', () => {
    const { options } = setUp();
    const one = { profile: profileOf(), client: options.client as never, sshProbe: null };
    expect(() => createProviders({ ...options, catalogMs: 1, providers: [one, one] })).toThrow(
      'two providers with the id provider-x',
    );
  });
});
