import { describe, expect, it } from 'vitest';
import { RateLimits } from '../../src/orchestrator/http/rate-limits.ts';
import { insertInstances } from '../support/databases/insert-instances.ts';
import { startTestOrchestrator } from '../support/orchestrator.ts';
import { instanceRequest, volumeRequest } from '../support/rows/requests.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

const INSTANCES = 2_000;
const POLL_MS = 10_000;
const ROUNDS_OF_AN_HOUR = 360;

/** With limits that few requests reach, and no watch that would look for the machines of inserted rows. */
const limited = (clock: VirtualClock, isEnabled = true) =>
  startTestOrchestrator({
    clock,
    rateLimits: {
      enabled: isEnabled,
      requests_per_account: { per_second: 50, burst: 50 },
      creates_per_account: { per_second: 5, burst: 10 },
    },
    reconcile: { watchIntervalMs: 600_000_000 },
  });

describe('a client that keeps to the contract is never refused', () => {
  it('polls 2,000 instances all at once every 10 s for an hour, and refreshes the catalog [poll-budget]', async () => {
    const clock = new VirtualClock();
    const limits = new RateLimits(clock, {
      enabled: true,
      // The least that the configuration allows.
      pollsPerInstance: { perSecond: 0.1, burst: 2 },
      requestsPerAccount: { perSecond: 1, burst: 10 },
      createsPerAccount: { perSecond: 0.01, burst: 1 },
      tokensPerAccount: { perSecond: 0.01, burst: 1 },
    });
    const ids = Array.from({ length: INSTANCES }, (_, index) => `inst-${index}`);
    let refused = 0;
    for (let round = 0; round < ROUNDS_OF_AN_HOUR; round++) {
      refused += ids.filter((id) => !limits.admitsPoll(id)).length;
      for (let read = 0; read < 3; read++) limits.admitRequest('acct');
      await clock.advance(POLL_MS);
    }
    expect(refused).toBe(0);
  });

  it('polls them with jitter, from two replicas at the same moment', () => {
    const clock = new VirtualClock();
    const bucket = { perSecond: 0.1, burst: 2 };
    const limits = new RateLimits(clock, {
      enabled: true,
      pollsPerInstance: bucket,
      requestsPerAccount: bucket,
      createsPerAccount: bucket,
      tokensPerAccount: bucket,
    });
    expect([limits.admitsPoll('a'), limits.admitsPoll('a')]).toEqual([true, true]);
    expect(limits.admitsPoll('a')).toBe(false);
    expect(limits.admitsPoll('b')).toBe(true);
  });
});

describe('a flood', () => {
  const flood = async (request: () => Promise<{ status: number }>, most: number): Promise<number> => {
    for (let count = 1; count <= most; count++) if ((await request()).status === 429) return count;
    return Number.POSITIVE_INFINITY;
  };

  it.each([
    ['GET', '/configurations', undefined, 51],
    ['GET', '/instances/nope', undefined, 51],
    ['GET', '/nothing', undefined, 51],
    ['POST', '/volumes', volumeRequest({ region: 'nowhere' }), 11],
    ['POST', '/instances', instanceRequest({ ssh_keys: ['x'] }), 11],
  ])(
    'of %s %s is 429 with Retry-After and the envelope; other accounts are served',
    async (method, path, body, at) => {
      const clock = new VirtualClock();
      await using orchestrator = await limited(clock);
      const other = await orchestrator.addAccount('other');
      const ask = (key = orchestrator.key) =>
        orchestrator.request(method, path, { key, ...(body && { body }) });
      expect(await flood(ask, at)).toBe(at);
      const refused = await ask();
      expect(refused.body).toMatchObject({ error: { code: 'too_many_requests' } });
      const retryAfter = Number(refused.headers.get('retry-after'));
      expect(retryAfter).toBeGreaterThanOrEqual(1);
      expect((await ask(other)).status).not.toBe(429);
      await clock.advance(retryAfter * 1000);
      expect((await ask()).status).not.toBe(429);
    },
  );

  it('on one instance does not touch another one, nor the rest of the account', async () => {
    const clock = new VirtualClock();
    await using orchestrator = await limited(clock);
    const [first = '', second = ''] = await insertInstances(orchestrator, 2);
    expect(await flood(() => orchestrator.request('GET', `/instances/${first}`), 300)).toBe(201);
    const refused = await orchestrator.request('GET', `/instances/${first}`);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
    expect((await orchestrator.request('GET', `/instances/${second}`)).status).toBe(200);
    expect((await orchestrator.request('GET', '/configurations')).status).toBe(200);
    await clock.advance(POLL_MS);
    expect((await orchestrator.request('GET', `/instances/${first}`)).status).toBe(200);
  });

  it("by another account does not use up an instance's polls", async () => {
    const clock = new VirtualClock();
    await using orchestrator = await limited(clock);
    const key = await orchestrator.addAccount('other');
    const [id = ''] = await insertInstances(orchestrator, 1);
    expect(await flood(() => orchestrator.request('GET', `/instances/${id}`, { key }), 100)).toBe(51);
    expect((await orchestrator.request('GET', `/instances/${id}`)).status).toBe(200);
  });

  it('is let through where the operator has turned limits off', async () => {
    await using orchestrator = await limited(new VirtualClock(), false);
    expect(await flood(() => orchestrator.request('GET', '/volumes/locations'), 100)).toBe(
      Number.POSITIVE_INFINITY,
    );
  });
});
