import { describe, expect, it } from 'vitest';
import { PlainProvider } from '../support/doubles/plain-provider.ts';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import {
  type MarketReply,
  type MarketRequest,
  startTestMarketplace,
  type TestMarketplace,
  type TestMarketplaceOptions,
} from '../support/marketplace.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

const WINDOW_MS = 15 * 60_000;
const START = Date.UTC(2026, 10, 21);
const mLimits = { catalogReads: 250, accountRequests: 250, creates: 10, otherRequests: 250 };

function start(options: TestMarketplaceOptions = {}): Promise<TestMarketplace> {
  return startTestMarketplace({ clock: new VirtualClock(START), rateLimits: mLimits, ...options });
}

function standing({ headers }: MarketReply): number[] {
  return ['Limit', 'Remaining', 'Reset'].map((name) => Number(headers.get(`X-RateLimit-${name}`)));
}

async function askTimes(
  market: TestMarketplace,
  times: number,
  ...request: Parameters<TestMarketplace['request']>
): Promise<MarketReply> {
  let last = await market.request(...request);
  for (let count = 1; count < times; count++) last = await market.request(...request);
  return last;
}

/** A marketplace with a provider that has machines for every create. */
function startSelling(options: TestMarketplaceOptions = {}): Promise<TestMarketplace> {
  const clock = new VirtualClock(START);
  return start({
    clock,
    providers: { 'provider-d': { client: new PlainProvider(clock).client } },
    ...options,
  });
}

const wanted = {
  ...{ provider: 'provider-d', offerId: 'gpu-1', gpuCount: 1, region: 'eu-one', instanceType: 'dedicated' },
  ...{ operatingSystem: 'ubuntu-24.04', ssh_public_key: newPublicKey() },
};

const create = (market: TestMarketplace, { key = '', body = wanted, address }: MarketRequest) =>
  market.request('POST', '/api/deployments', { body, key, ...(address && { address }) });

const outcomeOf = (reply: MarketReply): number[] => [reply.status, ...standing(reply).slice(0, 2)];

async function advance(market: TestMarketplace, ms: number): Promise<void> {
  if (market.clock instanceof VirtualClock) await market.clock.advance(ms);
}

describe('M: Limits', () => {
  it('admits 250 catalog reads of an address in 15 minutes, and tells of it to the end of the window [limit-catalog-reads]', async () => {
    await using market = await start();
    const reset = (START + WINDOW_MS) / 1000;
    expect(standing(await market.request('GET', '/api/providers', { key: null }))).toEqual([250, 249, reset]);
    const last = await askTimes(market, 249, 'GET', '/api/gpu-offers', { key: null });
    expect([last.status, ...standing(last)]).toEqual([200, 250, 0, reset]);
    await advance(market, WINDOW_MS - 1);
    const refused = await market.request('GET', '/api/providers', { key: null });
    expect(refused).toMatchObject({
      status: 429,
      body: { error: expect.any(String), message: expect.any(String), retryAfter: 900 },
    });
    expect(Object.keys(refused.body).sort()).toEqual(['error', 'message', 'retryAfter']);
    expect([refused.headers.get('Retry-After'), ...standing(refused)]).toEqual(['1', 250, 0, reset]);
    await advance(market, 1);
    const next = await market.request('GET', '/api/providers', { key: null });
    expect([next.status, ...standing(next)]).toEqual([200, 250, 249, reset + 900]);
  });

  it('counts other addresses, account requests and the rest apart [limit-separate-buckets]', async () => {
    await using market = await start();
    await askTimes(market, 250, 'GET', '/api/providers');
    expect((await market.request('GET', '/api/gpu-offers')).status).toBe(429);
    expect((await market.request('GET', '/api/providers', { address: '192.0.2.2' })).status).toBe(200);
    expect(standing(await market.request('GET', '/api/balance')).slice(0, 2)).toEqual([250, 249]);
    expect(standing(await market.request('GET', '/api/deployments')).slice(0, 2)).toEqual([250, 248]);
    expect(standing(await market.request('GET', '/api/config/system')).slice(0, 2)).toEqual([250, 249]);
    expect(standing(await market.request('POST', '/api/deployments/dep-1/pause')).slice(0, 2)).toEqual([
      250, 248,
    ]);
  });

  it('counts together what M: counts together [limit-shared-buckets]', async () => {
    await using market = await start();
    const counted = [
      ...['GET /api/deployments', 'GET /api/deployments/dep-1', 'PATCH /api/deployments/dep-1'],
      ...['DELETE /api/deployments/dep-1', 'GET /api/deployments/dep-1/can-terminate'],
      ...['GET /api/ssh-keys', 'POST /api/ssh-keys', 'GET /api/ssh-keys/ssh-1', 'DELETE /api/ssh-keys/ssh-1'],
      ...['GET /api/balance', 'GET /api/teams', 'GET /api/teams/details/team-1'],
    ].map((endpoint) => endpoint.split(' ') as [string, string]);
    const remaining: (number | undefined)[] = [];
    for (const [method, path] of counted)
      remaining.push(standing(await market.request(method, path, method === 'GET' ? {} : { body: {} }))[1]);
    expect(remaining).toEqual(counted.map((_, index) => 249 - index));
    await askTimes(market, 250 - counted.length, 'GET', '/api/balance');
    for (const [method, path] of counted) expect((await market.request(method, path)).status).toBe(429);
  });

  it('admits 10 accepted creates of a user in 15 minutes from any address, more or any number where they are let [limit-creates]', async () => {
    await using market = await startSelling();
    const { key } = market.user;
    for (let count = 249; count > 229; count--)
      expect(outcomeOf(await create(market, { key, body: {} }))).toEqual([400, 250, count]);
    const replies = await Promise.all(
      Array.from({ length: 20 }, (_, index) => create(market, { key, address: `192.0.2.${index}` })),
    );
    expect(replies.map(outcomeOf).sort()).toEqual([
      ...Array.from({ length: 10 }, (_, count) => [201, 10, count]),
      ...Array(10).fill([429, 10, 0]),
    ]);
    const raised = await market.addUser('raised@example.com', { createLimit: 12 });
    expect(outcomeOf(await create(market, raised))).toEqual([201, 12, 11]);
    const none = await market.addUser('none@example.com', { createLimit: 0 });
    expect(outcomeOf(await create(market, none))).toEqual([429, 0, 0]);
    const unlimited = await market.addUser('unlimited@example.com', { createLimit: -1 });
    for (let count = 0; count < 11; count++)
      expect(outcomeOf(await create(market, unlimited))).toEqual([201, 250, 230]);
  });

  it('follows a limit that is raised while it is used up [limit-raised]', async () => {
    await using market = await startSelling({ rateLimits: { ...mLimits, creates: 1 } });
    await create(market, market.user);
    expect((await create(market, market.user)).status).toBe(429);
    await market.store.transact(async (tx) => {
      const user = await tx.users.byId(market.user.userId);
      if (user !== null) await tx.users.update({ ...user, createLimit: 20 });
    });
    expect((await create(market, market.user)).status).toBe(201);
  });

  it.each([
    [401, { key: 'wrong' }],
    [400, { body: {} }],
    [400, { body: '{' }],
  ])(
    'counts creates that are refused with %s against their address, and against no user',
    async (status, refused) => {
      await using market = await startSelling({ rateLimits: { ...mLimits, otherRequests: 2 } });
      const request = { ...market.user, ...refused };
      expect(outcomeOf(await create(market, request))).toEqual([status, 2, 1]);
      expect(standing(await market.request('GET', '/api/config/system')).slice(0, 2)).toEqual([2, 0]);
      const last = await create(market, request);
      expect([...outcomeOf(last), last.headers.get('Retry-After')]).toEqual([429, 2, 0, '900']);
      expect(last.body['retryAfter']).toBe(900);
      expect(outcomeOf(await create(market, market.user))).toEqual([201, 10, 9]);
    },
  );
});

describe('the address that is counted', () => {
  it('is that of the socket: X-Forwarded-For is not believed', async () => {
    await using market = await start();
    for (let count = 0; count < 250; count++)
      await market.request('GET', '/api/providers', {
        headers: { 'X-Forwarded-For': `198.51.100.${count}` },
      });
    const spoofed = await market.request('GET', '/api/providers', {
      headers: { 'X-Forwarded-For': '203.0.113.9' },
    });
    expect(spoofed.status).toBe(429);
  });

  it('is what the outermost trusted proxy saw: what a client writes before it changes nothing [limit-proxy-address]', async () => {
    await using market = await start({ trustedProxies: 1 });
    const from = (forwarded: string) =>
      market.request('GET', '/api/providers', { headers: { 'X-Forwarded-For': forwarded } });
    for (let count = 0; count < 250; count++) await from(`10.0.0.${count}, 203.0.113.9`);
    expect((await from('10.9.9.9, 203.0.113.9')).status).toBe(429);
    expect((await from('203.0.113.9, 203.0.113.10')).status).toBe(200);
  });

  it('is the /64 of an IPv6 address', async () => {
    await using market = await start();
    const from = (address: string) => market.request('GET', '/api/providers', { address });
    for (let count = 0; count < 250; count++) await from(`2001:db8:1:2::${count.toString(16)}`);
    expect((await from('2001:db8:1:2:ffff::1')).status).toBe(429);
    expect((await from('2001:db8:1:3::1')).status).toBe(200);
  });
});
