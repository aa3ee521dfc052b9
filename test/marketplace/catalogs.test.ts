import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Store, StoreUnavailable } from '../../src/marketplace/model/store.ts';
import { SHARED_LEASE } from '../../src/work/lease-time.ts';
import { PlainProvider } from '../support/doubles/plain-provider.ts';
import type { ProviderMethod } from '../support/doubles/provider-faults.ts';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import { startTestMarketplace, type TestMarketplace } from '../support/marketplace.ts';
import { openTestMarketStore } from '../support/rows/stores.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

const REREAD_MS = 3_000;
/** At most, with its jitter. */
const CATALOG_MS = 37_500;
const CATALOG_CALLS: readonly ProviderMethod[] = ['listConfigurations', 'listVolumeLocations'];

let store: Store;
let clock: VirtualClock;
let closing: (() => PromiseLike<void>)[];
beforeEach(async () => {
  clock = new VirtualClock();
  store = await openTestMarketStore();
  closing = [];
});
afterEach(async () => {
  for (const close of closing.reverse()) await close();
});

/** A server on the database that all share. The provider is one; each server's calls to it are counted apart. */
async function serve(email: string, plain = new PlainProvider(clock)) {
  let isAlive = true;
  const market = await startTestMarketplace({
    clock,
    store: {
      ...store,
      transact: async (body) => {
        if (!isAlive) throw new StoreUnavailable('killed');
        return store.transact(body);
      },
    },
    email,
    providers: { 'provider-d': { client: plain.client } },
  });
  closing.push(() => market[Symbol.asyncDispose]());
  return {
    market,
    plain,
    catalogCalls: () => CATALOG_CALLS.reduce((sum, method) => sum + plain.faults.countOf(method), 0),
    /** It writes nothing any more, and lets go of no lease. */
    kill: () => {
      isAlive = false;
    },
  };
}

const order = (market: TestMarketplace) =>
  market.request('POST', '/api/deployments', {
    body: {
      provider: 'provider-d',
      offerId: 'gpu-1',
      gpuCount: 1,
      region: 'eu-one',
      ssh_public_key: newPublicKey(),
      operatingSystem: 'ubuntu-24.04',
    },
  });
const orderVolume = (market: TestMarketplace) =>
  market.request('POST', '/api/volumes', {
    body: { name: 'data', sizeInGb: 100, provider: 'provider-d', region: 'eu-one' },
  });
const offers = async (market: TestMarketplace) => (await market.request('GET', '/api/gpu-offers')).body;

describe('a server that has just started', () => {
  it('answers as the other one does, without a call to the provider [catalog-shared-processes]', async () => {
    const first = await serve('first@example.com');
    const second = await serve('second@example.com');
    expect(await offers(second.market)).toEqual(await offers(first.market));
    expect((await order(second.market)).status).toBe(201);
    expect((await order(first.market)).status).toBe(201);
    await clock.advance(5 * CATALOG_MS);
    expect(first.catalogCalls()).toBeGreaterThan(8);
    expect(second.catalogCalls()).toBe(0);
  });

  it('sees within seconds what the holder of the lease reads', async () => {
    const first = await serve('first@example.com');
    const second = await serve('second@example.com');
    expect((await order(second.market)).status).toBe(201);
    first.plain.options.capacity = 0;
    await first.market.marketplace.workers.refreshCatalogs();
    await clock.advance(REREAD_MS);
    expect(await order(second.market)).toMatchObject({
      status: 400,
      body: { details: { reason: 'out_of_stock' } },
    });
  });

  it('reads the catalog once the holder of the lease is dead [catalog-holder-killed]', async () => {
    const first = await serve('first@example.com');
    const second = await serve('second@example.com');
    first.kill();
    second.plain.options.capacity = 0;
    await clock.advance(REREAD_MS);
    expect((await order(second.market)).status).toBe(201);
    await clock.advance(SHARED_LEASE.ttlMs + SHARED_LEASE.renewMs);
    expect(second.catalogCalls()).toBeGreaterThan(0);
    expect((await order(second.market)).status).toBe(400);
  });
});

describe('a marketplace that knows nothing of its provider yet', () => {
  it('answers a create with 503 and Retry-After, until the provider was read [catalog-unknown]', async () => {
    const plain = new PlainProvider(clock);
    plain.faults.plan = () => 'refuse';
    const { market } = await serve('first@example.com', plain);
    for (const reply of [await order(market), await orderVolume(market)]) {
      expect(reply).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } });
      expect(reply.headers.get('Retry-After')).toBe('5');
    }
    expect((await market.request('GET', '/api/gpu-offers')).body).toMatchObject({ data: [] });
    expect([plain.instances, plain.volumes]).toEqual([[], []]);
    plain.faults.plan = () => 'none';
    await clock.advance(CATALOG_MS);
    expect([(await order(market)).status, (await orderVolume(market)).status]).toEqual([201, 201]);
  });

  it('ends at once while a provider hangs', async () => {
    const plain = new PlainProvider(clock);
    const hanging = Promise.withResolvers<never>();
    const market = await startTestMarketplace({
      clock,
      store,
      providers: { 'provider-d': { client: plain.client } },
    });
    closing.push(() => market[Symbol.asyncDispose]());
    const calls = plain.faults.countOf('listConfigurations');
    Object.assign(plain.client, {
      listConfigurations: () => hanging.promise,
      close: async () => hanging.reject(new Error('closed')),
    });
    await clock.advance(CATALOG_MS);
    const at = clock.now();
    await market.marketplace.close();
    expect([clock.now(), plain.faults.countOf('listConfigurations')]).toEqual([at, calls]);
    expect(await store.read.catalogs.byProvider('provider-d')).toMatchObject({ problems: [] });
  });

  it('waits for a provider that hangs, and sells what the others have [catalog-refresh-hangs]', async () => {
    const [hanging, well] = [new PlainProvider(clock), new PlainProvider(clock)];
    hanging.faults.plan = () => 'hang';
    const market = await startTestMarketplace({
      clock,
      providers: { 'provider-a': { client: hanging.client }, 'provider-d': { client: well.client } },
    });
    closing.push(() => market[Symbol.asyncDispose]());
    await clock.advance(2 * CATALOG_MS);
    const refreshedAt = (id: string) => market.marketplace.providers.get(id)?.catalog.refreshedAt ?? null;
    expect(refreshedAt('provider-a')).toBeNull();
    expect(clock.now() - (refreshedAt('provider-d') ?? 0)).toBeLessThanOrEqual(CATALOG_MS);
    expect((await order(market)).status).toBe(201);
  });
});
