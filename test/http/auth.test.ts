import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { digestSecret, generateApiKey } from '../../src/keys/api-key.ts';
import { createKey, revokeKey, setPassword } from '../../src/orchestrator/accounts/accounts.ts';
import { systemRandom } from '../../src/runtime/system.ts';
import { instanceRequest, volumeRequest } from '../../testing/requests.ts';
import { until } from '../../testing/until.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { fillPath, type Route, routes } from '../support/http/routes.ts';
import { startServer, WireClient } from '../support/http/wire.ts';
import {
  type Reply,
  startTestOrchestrator,
  type TestOptions,
  type TestOrchestrator,
} from '../support/orchestrator.ts';

const PASSWORD = 'correct horse battery staple';
const SECONDS = 1_000;
const HOURS = 3_600_000;

interface ErrorReply {
  error: { code: string; message: string };
}
interface TokenReply {
  access_token: string;
  token_type: string;
  expires_in: number;
}

let clock: VirtualClock;
let orchestrator: TestOrchestrator;
let live: { instanceId: string; volumeId: string };

async function start(options: TestOptions = {}): Promise<void> {
  clock = new VirtualClock();
  // Hours pass in these tests, and few of them are about the platform.
  orchestrator = await startTestOrchestrator({ clock, reconcile: { watch_interval_s: 60 }, ...options });
  const instance = await orchestrator.request('POST', '/instances', { body: instanceRequest() });
  const volume = await orchestrator.request('POST', '/volumes', { body: volumeRequest() });
  live = { instanceId: String(instance.body['id']), volumeId: String(volume.body['id']) };
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

function expectUnauthorized(reply: Reply<ErrorReply>): void {
  expect(reply.status).toBe(401);
  expect(reply.body.error.code).toBe('unauthorized');
  expect(reply.headers.get('www-authenticate')).toBe('Bearer');
  expect(reply.headers.get('cache-control')).toBe('no-store');
}

describe('every route', () => {
  const guarded = routes.filter(({ isPublic }) => !isPublic);

  it('is known to this test, and only the one of the contract is public', () => {
    expect(guarded.length).toBe(18);
    expect(routes.filter(({ isPublic }) => isPublic).map(({ path }) => path)).toEqual(['/auth/token']);
  });

  /** Credentials that open nothing, by what is wrong with them. */
  async function badCredentials(): Promise<Record<string, string | undefined>> {
    const { key } = orchestrator;
    const expired = await newKey({ expiresAt: clock.now() + SECONDS });
    const revoked = await newKey();
    const parent = await newKey();
    const orphan = await buy({ api_key: parent.key });
    const brief = await buy({ api_key: (await newKey()).key });
    for (const { key: used } of [expired, revoked]) expect((await list(used)).status).toBe(200);
    for (const { body } of [orphan, brief]) expect((await list(body.access_token)).status).toBe(200);
    await revokeKey(deps(), revoked.record.id);
    await revokeKey(deps(), parent.record.id);
    await clock.advance(2 * HOURS);
    return {
      none: undefined,
      empty: '',
      'the scheme alone': 'Bearer',
      'no scheme': key,
      'a wrong key': `Bearer ${generateApiKey(systemRandom)}`,
      'a key with one letter changed': `Bearer ${key.slice(0, -1)}${key.endsWith('a') ? 'b' : 'a'}`,
      'a key cut short': `Bearer ${key.slice(0, -1)}`,
      'a key with more after it': `Bearer ${key}x`,
      'a key in quotes': `Bearer "${key}"`,
      'the wrong scheme': `Basic ${Buffer.from(`default:${key}`).toString('base64')}`,
      'another wrong scheme': `Token ${key}`,
      'two schemes': `Basic x, Bearer ${key}`,
      'two keys': `Bearer ${key} ${key}`,
      'a key and a parameter': `Bearer ${key}, realm=x`,
      'an expired key': `Bearer ${expired.key}`,
      'a revoked key': `Bearer ${revoked.key}`,
      'a token of a revoked key': `Bearer ${orphan.body.access_token}`,
      'an expired token': `Bearer ${brief.body.access_token}`,
      '9 KB of noise': `Bearer ${'A'.repeat(9_000)}`,
      '9 KB of spaces': `Bearer ${' '.repeat(9_000)}x`,
      SQL: `Bearer ' OR 1=1 --`,
      'the digest of a key': `Bearer ${digestSecret(key).toString('hex')}`,
    };
  }

  it('refuses every credential that is not valid, with 401 and never a 404 [credential-refused]', async () => {
    const replies = new Map<string, string>();
    for (const [what, authorization] of Object.entries(await badCredentials()))
      for (const { method, path, hasBody } of guarded) {
        const reply = await orchestrator.request<ErrorReply>(method, fillPath(path, live), {
          key: null,
          ...(authorization !== undefined && { headers: { Authorization: authorization } }),
          ...(hasBody && { body: {} }),
        });
        expect([what, method, path, reply.status]).toEqual([what, method, path, 401]);
        expectUnauthorized(reply);
        replies.set(authorization === undefined ? 'none' : 'wrong', reply.text);
        expect([...replies.values()]).toContain(reply.text);
      }
    expect((await orchestrator.request('GET', `/instances/${live.instanceId}`)).status).toBe(200);
  });

  it('refuses two Authorization headers, a right one first, also on the polled read', async () => {
    await using server = await startServer(orchestrator);
    await using client = await WireClient.open(server.port);
    const bearer = `Authorization: Bearer ${orchestrator.key}\r\n`;
    const polled = `/v1/instances/${live.instanceId}`;
    for (const credential of [bearer, bearer]) {
      client.send(`GET ${polled} HTTP/1.1\r\nHost: x\r\n${credential}\r\n`);
      expect((await client.reply('GET', polled))?.status).toBe(200);
    }
    for (const second of [bearer, 'Authorization: Bearer nonsense\r\n', 'AUTHORIZATION: Basic eDp5\r\n'])
      for (const { method, path } of guarded) {
        const filled = `/v1${fillPath(path, live)}`;
        client.send(`${method} ${filled} HTTP/1.1\r\nHost: x\r\n${bearer}${second}Content-Length: 0\r\n\r\n`);
        expect([path, (await client.reply(method, filled))?.status]).toEqual([path, 401]);
      }
  });

  it('refuses bad credentials also where there is no such route, id or method', async () => {
    for (const [method, path] of [
      ['GET', '/instances/nope'],
      ['GET', '/nothing'],
      ['OPTIONS', '/instances'],
      ['GET', '/instances/x/auth/token'],
      ['POST', '/volumes/auth/token'],
    ] as const)
      expectUnauthorized(await orchestrator.request<ErrorReply>(method, path, { key: null }));
  });

  it.each(['bearer', 'BEARER', 'BeArEr'])('takes the scheme in any case: %s', async (scheme) => {
    const { status } = await list(null, { Authorization: `${scheme} ${orchestrator.key}` });
    expect(status).toBe(200);
    expect((await list(null, { Authorization: `${scheme}   ${orchestrator.key}` })).status).toBe(200);
  });
});

describe('keys', () => {
  it('are several at once, of one account [several-keys]', async () => {
    const keys = [
      orchestrator.key,
      (await newKey()).key,
      (await newKey({ expiresAt: clock.now() + HOURS })).key,
    ];
    const lists = [];
    for (const key of keys) lists.push((await list(key)).text);
    expect(new Set(lists).size).toBe(1);
    expect(lists[0]).toContain(live.instanceId);
  });

  it('are dead within seconds of being revoked, on every path, the polled one too [key-revoked-within-seconds]', async () => {
    const { key, record } = await newKey();
    await using server = await startServer(orchestrator);
    await using client = await WireClient.open(server.port);
    const path = `/v1/instances/${live.instanceId}`;
    const poll = async () => {
      client.request('GET', path, { Authorization: `Bearer ${key}` });
      return (await client.reply('GET', path))?.status;
    };
    expect([await poll(), await poll(), (await list(key)).status]).toEqual([200, 200, 200]);
    await revokeKey(deps(), record.id);
    await clock.advance(2 * SECONDS);
    expect([await poll(), await poll(), (await list(key)).status]).toEqual([401, 401, 401]);
    expect((await list(orchestrator.key)).status).toBe(200);
  });

  it('are dead at the moment at which they expire', async () => {
    const { key } = await newKey({ expiresAt: clock.now() + 10 * SECONDS });
    await clock.advance(10 * SECONDS - 1);
    expect((await list(key)).status).toBe(200);
    await clock.advance(1);
    expect((await list(key)).status).toBe(401);
  });

  it('have the time of their last use written down', async () => {
    const { key, record } = await newKey();
    await clock.advance(5 * SECONDS);
    const usedAt = clock.now();
    await list(key);
    await clock.advance(60 * SECONDS);
    const keys = await orchestrator.store.read.credentials.listKeys();
    expect(keys.find(({ id }) => id === record.id)?.lastUsedAt).toBe(usedAt);
    const { key: unused, record: unusedRecord } = await newKey();
    await clock.advance(60 * SECONDS);
    expect(unused).not.toBe(key);
    const later = await orchestrator.store.read.credentials.listKeys();
    expect(later.find(({ id }) => id === unusedRecord.id)?.lastUsedAt).toBeNull();
  });

  it('may come from the environment, for one account', async () => {
    await orchestrator[Symbol.asyncDispose]();
    const key = 'from-the-environment-0123456789';
    const environmentKey = { digest: digestSecret(key), accountId: '' };
    await start({ environmentKey });
    environmentKey.accountId = orchestrator.account.id;
    expect((await list(key)).text).toContain(live.instanceId);
    const { body } = await buy({ api_key: key });
    expect((await list(body.access_token)).status).toBe(200);
    expectUnauthorized(await list(`${key}x`));
  });
});

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
    await start({ rateLimits: { enabled: true }, ...options });
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

  it('of one name from one address are answered late, and by ten seconds at most [login-throttled]', async () => {
    await restart();
    const from = clock.now();
    const lateBy: number[] = [];
    const replies = Array.from({ length: 14 }, async () => {
      expectUnauthorized(await buy({ api_key: 'berth_wrong' }));
      lateBy.push(clock.now() - from);
    });
    await clock.advance(10 * SECONDS);
    await Promise.all(replies);
    expect(lateBy.toSorted((a, b) => a - b)).toEqual([
      ...new Array(10).fill(0),
      6 * SECONDS,
      ...new Array(3).fill(10 * SECONDS),
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
    await start({ rateLimits: { enabled: true, tokens_per_account: { per_second: 0.5, burst: 3 } } });
  };

  it('faster than the limit are 429 with Retry-After, for that account alone; failures count for none', async () => {
    await limited();
    const other = await orchestrator.addAccount('other');
    for (let count = 0; count < 3; count++) {
      expect((await buy({ api_key: 'berth_wrong' })).status).toBe(401);
      expect((await buy({ api_key: orchestrator.key })).status).toBe(200);
    }
    const refused = await buy({ api_key: orchestrator.key });
    expect([refused.status, refused.body.error.code, refused.headers.get('retry-after')]).toEqual([
      ...[429, 'too_many_requests', '2'],
    ]);
    expect((await buy({ api_key: other })).status).toBe(200);
    expect((await list(orchestrator.key)).status).toBe(200);
    await clock.advance(2 * SECONDS);
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

it('tells a route that needs no credential from one that does by the document', () => {
  const publicRoutes: Route[] = routes.filter(({ isPublic }) => isPublic);
  expect(publicRoutes.map(({ method, path }) => `${method} ${path}`)).toEqual(['POST /auth/token']);
});
