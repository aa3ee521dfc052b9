import { afterEach, describe, expect, it } from 'vitest';
import { openTestMarketStore } from '../../../test/support/rows/stores.ts';
import { VirtualClock } from '../../../test/support/time/virtual-clock.ts';
import { ProviderError } from '../../client/orchestrator-client.ts';
import type { Configuration } from '../../contract/configuration.ts';
import { type ConfiguredProvider, createProviders } from './create-providers.ts';
import { noMarkups } from './markup.ts';
import { configurationOf, gpuTypes, profileOf } from './offer.fixture.ts';
import type { ProviderProfile } from './profile.ts';
import type { ProviderCatalog } from './provider.ts';

const down = () => Promise.reject(new ProviderError('timeout', 'GET /x: no whole answer within 10 ms'));

const folders: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of folders.splice(0)) await close();
});

async function setUp({ profile = profileOf() }: { profile?: ProviderProfile } = {}) {
  const clock = new VirtualClock();
  const store = await openTestMarketStore();
  const sold = {
    configurations: async (): Promise<Configuration[]> => [configurationOf()],
    available: async (): Promise<Configuration[]> => [configurationOf({ regions: ['eu-one'] })],
    locations: async () => [{ id: 'eu-one', name: 'EU One', types: ['ssd'], country_code: 'DE' }],
  };
  const client = {
    listConfigurations: () => sold.configurations(),
    listAvailability: () => sold.available(),
    listVolumeLocations: () => sold.locations(),
    close: async () => undefined,
  };
  const open = (changes: Partial<ConfiguredProvider> = {}) => {
    const logged: string[] = [];
    const note = (_: object, message: string) => void logged.push(message);
    const options = {
      store,
      clock,
      gpuTypes,
      log: { debug: note, info: note, warn: note, error: note },
      providers: [{ profile, client: client as never, sshProbe: null, markups: noMarkups, ...changes }],
    };
    const providers = createProviders(options);
    folders.push(() => providers.close());
    const feed = providers.get('provider-x')?.catalog as ProviderCatalog;
    return { options, providers, feed, logged, refresh: () => providers.refresh('provider-x', store) };
  };
  return { clock, store, sold, open, ...open() };
}

describe('a catalog', () => {
  it('is empty until it was first read', async () => {
    const { feed } = await setUp();
    expect(feed).toMatchObject({ refreshedAt: null, offers: new Map() });
  });

  it('joins offers with the regions that have stock, at the current price', async () => {
    const { refresh, feed, sold, clock } = await setUp();
    sold.available = async () => [configurationOf({ regions: ['us-two'], price_per_hour: 1.5 })];
    await refresh();
    expect(feed.refreshedAt).toBe(clock.now());
    expect(feed.offers.get('h100-1x')).toMatchObject({
      regions: ['eu-one', 'us-two'],
      inStockRegions: ['us-two'],
      priceMicroUsdPerHour: 1_500_000,
    });
  });

  it('treats an offer missing in /availability as sold out, and ignores one that is only there', async () => {
    const { refresh, feed, sold } = await setUp();
    sold.available = async () => [
      configurationOf({ available: false }),
      configurationOf({ id: 'never-published' }),
    ];
    await refresh();
    expect([...feed.offers.values()]).toMatchObject([{ offerId: 'h100-1x', inStockRegions: [] }]);
  });

  it('keeps an offer that its provider withdrew, out of stock', async () => {
    const { refresh, feed, sold } = await setUp();
    await refresh();
    sold.configurations = async () => [];
    await refresh();
    expect(feed.offers.get('h100-1x')).toMatchObject({
      isWithdrawn: true,
      inStockRegions: [],
      stoppedPriceMicroUsdPerHour: 500_000,
    });
    sold.configurations = async () => [configurationOf()];
    await refresh();
    expect(feed.offers.get('h100-1x')?.isWithdrawn).toBeUndefined();
  });

  it('keeps one offer of two with the same id, and none with an absurd price', async () => {
    const { refresh, feed, sold } = await setUp();
    sold.configurations = async () => [
      configurationOf({ id: 'absurd', price_per_hour: -1 }),
      configurationOf({ name: 'the first' }),
      configurationOf({ name: 'the second' }),
    ];
    await refresh();
    expect([...feed.offers.values()].map(({ name }) => name)).toEqual(['the first']);
  });

  it.each(['configurations', 'available'] as const)('keeps its last state while %s fails', async (part) => {
    const { refresh, feed, sold, clock } = await setUp();
    await refresh();
    const { refreshedAt, offers } = feed;
    sold[part] = down;
    await clock.advance(60_000);
    await refresh();
    expect(feed.refreshedAt).toBe(refreshedAt);
    expect(feed.offers).toEqual(offers);
  });

  it('is the same map while nothing changes', async () => {
    const { refresh, feed, sold } = await setUp();
    await refresh();
    const { offers } = feed;
    await refresh();
    expect(feed.offers).toBe(offers);
    sold.available = async () => [];
    await refresh();
    expect(feed.offers).not.toBe(offers);
  });

  it('logs a problem once until it is over', async () => {
    const { refresh, sold, logged } = await setUp();
    const { available } = sold;
    sold.available = down;
    await refresh();
    await refresh();
    sold.available = available;
    await refresh();
    await refresh();
    expect(logged).toEqual([
      'provider-x: the catalog cannot be read: GET /x: no whole answer within 10 ms',
      'provider-x: the catalog is read without problems again',
    ]);
  });

  it('has volume locations where its profile has volumes, and is read without them', async () => {
    const volumes = {
      min_size_gb: 1,
      max_size_gb: 100,
      price_per_gb_hour: 0.1,
      name_max_length: 60,
      grow: true,
      max_per_instance: 1,
      shareable: false,
      attach_at_create: true,
      attach_restarts_instance: false,
      rename: true,
      regions: {},
    };
    const { refresh, feed, sold, clock } = await setUp({
      profile: { ...profileOf(), volumes } as ProviderProfile,
    });
    await refresh();
    const expected = [{ id: 'eu-one', name: 'EU One', types: ['ssd'], countryCode: 'DE' }];
    expect(feed.volumeLocations).toEqual(expected);
    sold.locations = down;
    await clock.advance(1000);
    await refresh();
    expect(feed).toMatchObject({ volumeLocations: expected, refreshedAt: clock.now() });

    const without = await setUp();
    without.sold.locations = down;
    await without.refresh();
    expect(without.logged).toEqual([]);
  });
});

describe('a catalog that another process read', () => {
  it('is shown as in that process, with the markups of this one [catalog-shared]', async () => {
    const { store, sold, clock, feed, refresh, open } = await setUp();
    sold.configurations = async () => [configurationOf(), configurationOf({ id: 'leaving' })];
    await refresh();
    sold.configurations = async () => [configurationOf()];
    sold.available = async () => [];
    await refresh();
    const same = open();
    const dearer = open({ markups: { ...noMarkups, all: { basisPoints: 10_000 } } });
    expect(same.feed).toMatchObject({ refreshedAt: null, offers: new Map() });
    await same.providers.reread();
    await dearer.providers.reread();
    expect(same.feed.offers).toEqual(feed.offers);
    expect([...same.feed.offers.values()]).toMatchObject([
      { offerId: 'h100-1x', inStockRegions: [] },
      { offerId: 'leaving', isWithdrawn: true },
    ]);
    expect(same.feed.refreshedAt).toBe(clock.now());
    const { priceMicroUsdPerHour = 0 } = feed.offers.get('h100-1x') ?? {};
    expect(dearer.feed.offers.get('h100-1x')?.priceMicroUsdPerHour).toBe(2 * priceMicroUsdPerHour);
    expect(await store.read.catalogs.versions()).toEqual([
      { providerId: 'provider-x', version: 2, readAt: clock.now() },
    ]);
  });

  it('is read again every few seconds, and as a whole only when it has changed', async () => {
    const { store, sold, clock, refresh, open } = await setUp();
    await refresh();
    const other = open();
    let reads = 0;
    const { byProvider } = store.read.catalogs;
    store.read.catalogs.byProvider = (id) => {
      reads++;
      return byProvider(id);
    };
    await other.providers.reread();
    other.providers.start();
    await clock.advance(60_000);
    expect([reads, other.feed.offers.get('h100-1x')?.inStockRegions]).toEqual([1, ['eu-one']]);
    sold.available = async () => [];
    await refresh();
    await clock.advance(3_000);
    expect(other.feed.offers.get('h100-1x')?.inStockRegions).toEqual([]);
    await refresh();
    await clock.advance(3_000);
    expect(other.feed.refreshedAt).toBe(clock.now() - 3_000);
    await other.providers.close();
    expect(clock.pendingTimers).toBe(0);
  });

  it('shows the read errors, also before anything is known', async () => {
    const { sold, refresh, open } = await setUp();
    sold.available = down;
    await refresh();
    const other = open();
    await other.providers.reread();
    expect(other.feed.refreshedAt).toBeNull();
    expect(other.providers.problemsOf('provider-x')).toEqual([
      'the catalog cannot be read: GET /x: no whole answer within 10 ms',
    ]);
  });

  it('keeps an offer that has a mistake by now, out of stock, in a new process too', async () => {
    const { sold, refresh, open } = await setUp();
    await refresh();
    sold.configurations = async () => [configurationOf({ price_per_hour: -1 })];
    sold.available = async () => [];
    await refresh();
    const other = open();
    await other.providers.reread();
    expect(other.feed.offers.get('h100-1x')).toMatchObject({ isWithdrawn: true, inStockRegions: [] });
  });
});

it('refuses two providers with the same id', async () => {
  const { options } = await setUp();
  const [one] = options.providers;
  expect(() =>
    createProviders({ ...options, providers: [...options.providers, ...options.providers] }),
  ).toThrow(`Two providers have the id ${one?.profile.id}`);
});
