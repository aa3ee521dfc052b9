import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { digestSecret, generateApiKey } from '../../src/keys/api-key.ts';
import { createKey, revokeKey, setPassword } from '../../src/orchestrator/accounts/accounts.ts';
import { systemRandom } from '../../src/runtime/system.ts';
import { startServer, WireClient } from '../support/http/wire.ts';
import type { TestOptions, TestOrchestrator } from '../support/orchestrator.ts';
import { until } from '../support/time/until.ts';
import type { VirtualClock } from '../support/time/virtual-clock.ts';
import {
  type ErrorReply,
  expectUnauthorized,
  SECONDS,
  startWithResources,
  type TokenReply,
} from './auth.fixture.ts';

const PASSWORD = 'correct horse battery staple';

let clock: VirtualClock;
let orchestrator: TestOrchestrator;
let live: { instanceId: string; volumeId: string };

async function start(options: TestOptions = {}): Promise<void> {
  ({ clock, orchestrator, live } = await startWithResources(options));
}
const deps = () => ({ store: orchestrator.store, clock, random: systemRandom });
const newKey = (options = {}) => createKey(deps(), 'default', options);

beforeEach(() => start());
afterEach(async () => {
  await orchestrator[Symbol.asyncDispose]();
});

const list = (key: string | null, headers: Record<string, string> = {}) =>
  orchestrator.request<ErrorReply>('GET', '/instances', { key, headers });
const buy = (body: unknown, headers: Record<string, string> = {}) =>
  orchestrator.request<TokenReply & ErrorReply>('POST', '/auth/token', { key: null, body, headers });

describe('POST /auth/token', () => {
  it('sells a token for a key, and the token works on every path', async () => {
    const { status, body, headers } = await buy({ api_key: orchestrator.key });
    expect(status).toBe(200);
    expect(body).toEqual({ access_token: expect.any(String), token_type: 'Bearer', expires_in: 3600 });
    expect(headers.get('cache-control')).toBe('no-store');
    for (let round = 0; round < 2; round++) {
      const reply = await orchestrator.request('GET', `/instances/${live.instanceId}`, {
        key: body.access_token,
      });
      expect(reply.status).toBe(200);
    }
    await clock.advance(body.expires_in * SECONDS - 1);
    expect((await list(body.access_token)).status).toBe(200);
    await clock.advance(1);
    expectUnauthorized(await list(body.access_token));
  });

  it('sells a token for a username and password', async () => {
    await setPassword(deps(), 'default', PASSWORD);
    const { status, body, headers } = await buy({ username: 'default', password: PASSWORD });
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect((await list(body.access_token)).text).toContain(live.instanceId);
  });

  it.each<[string, unknown]>([
    ['neither', {}],
    ['only a username', { username: 'default' }],
    ['only a password', { password: PASSWORD }],
    ['both', { api_key: 'x', username: 'default', password: PASSWORD }],
    ['a key and a username', { api_key: 'x', username: 'default' }],
    ['a key and a password', { api_key: 'x', password: PASSWORD }],
    ['a key that is null', { api_key: null }],
    ['a key that is a list', { api_key: ['x'] }],
    ['an empty key', { api_key: '' }],
    ['a username that is an object', { username: { $ne: '' }, password: { $ne: '' } }],
    ['a password of a megabyte less', { username: 'default', password: 'x'.repeat(100_000) }],
    ['a list', []],
    ['nothing', undefined],
  ])('answers 400 to %s', async (_name, body) => {
    const reply = await buy(body);
    expect([reply.status, reply.body.error.code]).toEqual([400, 'invalid_request']);
    expect(reply.headers.get('cache-control')).toBe('no-store');
    expect(reply.text).not.toContain(PASSWORD);
  });

  it('answers alike, 401, for an unknown user, a wrong password, no password and a wrong key [token-refused-alike]', async () => {
    await setPassword(deps(), 'default', PASSWORD);
    await orchestrator.addAccount('no-password');
    const texts = new Set<string>();
    for (const body of [
      { username: 'nobody', password: PASSWORD },
      { username: 'default', password: `${PASSWORD}r` },
      { username: 'DEFAULT', password: PASSWORD },
      { username: 'no-password', password: PASSWORD },
      { username: "' OR 1=1 --", password: PASSWORD },
      { api_key: generateApiKey(systemRandom) },
      { api_key: ` ${orchestrator.key}` },
      { api_key: `${orchestrator.key}\r\nX: y` },
      { api_key: `Bearer ${orchestrator.key}` },
      { api_key: PASSWORD },
    ]) {
      const reply = await buy(body);
      expectUnauthorized(reply);
      texts.add(reply.text);
    }
    expect([...texts]).toHaveLength(1);
  });

  it('sells no token for a token', async () => {
    await setPassword(deps(), 'default', PASSWORD);
    for (const credential of [{ api_key: orchestrator.key }, { username: 'default', password: PASSWORD }]) {
      const { body } = await buy(credential);
      expectUnauthorized(await buy({ api_key: body.access_token }));
    }
  });

  it('sells tokens that die with what bought them [token-dies-with-key]', async () => {
    await setPassword(deps(), 'default', PASSWORD);
    const { key, record } = await newKey();
    const ofKey = (await buy({ api_key: key })).body.access_token;
    const ofPassword = (await buy({ username: 'default', password: PASSWORD })).body.access_token;
    const ofExpiring = (await buy({ api_key: (await newKey({ expiresAt: clock.now() + 30 * SECONDS })).key }))
      .body;
    for (const token of [ofKey, ofPassword, ofExpiring.access_token])
      expect((await list(token)).status).toBe(200);

    await setPassword(deps(), 'default', `${PASSWORD}, changed`);
    await clock.advance(2 * SECONDS);
    expect([(await list(ofKey)).status, (await list(ofPassword)).status]).toEqual([200, 401]);
    await revokeKey(deps(), record.id);
    await clock.advance(2 * SECONDS);
    expect([(await list(ofKey)).status, (await list(ofPassword)).status]).toEqual([401, 401]);
    await clock.advance(30 * SECONDS);
    expect((await list(ofExpiring.access_token)).status).toBe(401);
  });

  it('does not care about a credential in the header', async () => {
    const { status } = await buy({ api_key: orchestrator.key }, { Authorization: 'Bearer nonsense' });
    expect(status).toBe(200);
  });

  it('keeps no token, key or password readable in the database', async () => {
    const { body } = await buy({ api_key: orchestrator.key });
    const found = await orchestrator.store.read.credentials.tokenByDigest(digestSecret(body.access_token));
    expect(JSON.stringify(found)).not.toContain(body.access_token);
    const keys = JSON.stringify(await orchestrator.store.read.credentials.listKeys());
    expect(keys).not.toContain(orchestrator.key);
    expect(keys).not.toContain(orchestrator.key.slice(10, -4));
  });
});

describe('logins that fail', () => {
  const restart = async (options: TestOptions = {}): Promise<void> => {
    await orchestrator[Symbol.asyncDispose]();
    await start({ rateLimits: {}, ...options });
    await setPassword(deps(), 'default', PASSWORD);
  };
  /** Sends so many at once; `end` moves the clock on until each has its answer. */
  const flood = (count: number, body: unknown, headers = {}) => {
    let answered = 0;
    const replies = Array.from({ length: count }, async () => {
      const reply = await buy(body, headers);
      answered++;
      return reply;
    });
    const end = async () => {
      await until('all are answered', async () => {
        await clock.advance(SECONDS);
        return answered === count;
      });
      return Promise.all(replies);
    };
    return { end };
  };

  it('of one name from one address are answered late, and by six seconds at most [login-throttled]', async () => {
    await restart();
    const from = clock.now();
    const lateBy: number[] = [];
    const replies = Array.from({ length: 14 }, async () => {
      expectUnauthorized(await buy({ api_key: 'berth_wrong' }));
      lateBy.push(clock.now() - from);
    });
    await clock.advance(6 * SECONDS);
    await Promise.all(replies);
    expect(lateBy.toSorted((a, b) => a - b)).toEqual([
      ...new Array(10).fill(0),
      ...new Array(4).fill(6 * SECONDS),
    ]);
  });

  it('are forgotten when their client goes away: nothing waits for it', async () => {
    await restart();
    for (let count = 0; count < 10; count++) await buy({ api_key: 'berth_wrong' });
    await using server = await startServer(orchestrator);
    // The answer to the eleventh failure of an address; the other timers of the server come and go.
    const held = () => clock.dueAt(clock.now() + 6 * SECONDS);
    expect(held()).toBe(0);
    await using client = await WireClient.open(server.port);
    const body = JSON.stringify({ api_key: 'berth_wrong' });
    const headers = { 'Content-Type': 'application/json', 'Content-Length': String(body.length) };
    client.request('POST', '/v1/auth/token', headers, body);
    await until('an answer is held', () => held() === 1);
    // A client that only says that it sends no more may still wait for its answer.
    client.socket.resetAndDestroy();
    await until('nothing is held', () => held() === 0);
  });

  it('are held no longer once the server drains', async () => {
    await restart();
    const last = flood(12, { api_key: 'berth_wrong' });
    await clock.advance(0);
    orchestrator.beginDrain();
    for (const reply of await last.end()) expectUnauthorized(reply);
  });
});

describe('tokens that are bought', () => {
  const limited = async (): Promise<void> => {
    await orchestrator[Symbol.asyncDispose]();
    await start({ rateLimits: {} });
  };

  it('faster than the limit are 429 with Retry-After, for that account alone; failures count for none', async () => {
    await limited();
    const other = await orchestrator.addAccount('other');
    for (let count = 0; count < 3; count++) expect((await buy({ api_key: 'berth_wrong' })).status).toBe(401);
    for (let count = 0; count < 100; count++)
      expect((await buy({ api_key: orchestrator.key })).status).toBe(200);
    const refused = await buy({ api_key: orchestrator.key });
    expect([refused.status, refused.body.error.code, refused.headers.get('retry-after')]).toEqual([
      ...[429, 'too_many_requests', '1'],
    ]);
    expect((await buy({ api_key: other })).status).toBe(200);
    expect((await list(orchestrator.key)).status).toBe(200);
    await clock.advance(SECONDS);
    expect((await buy({ api_key: orchestrator.key })).status).toBe(200);
  });

  it('are gone from the database soon after they have expired', async () => {
    const { body } = await buy({ api_key: orchestrator.key });
    const stored = () => orchestrator.store.read.credentials.tokenByDigest(digestSecret(body.access_token));
    expect(await stored()).not.toBeNull();
    await clock.advance(body.expires_in * SECONDS + 20 * SECONDS);
    expect(await stored()).toBeNull();
  });
});
