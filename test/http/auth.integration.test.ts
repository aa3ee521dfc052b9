import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { digestSecret, generateApiKey } from '../../src/keys/api-key.ts';
import { createKey, revokeKey } from '../../src/orchestrator/accounts/accounts.ts';
import { systemRandom } from '../../src/runtime/system.ts';
import { fillPath, routes } from '../support/http/routes.ts';
import { startServer, WireClient } from '../support/http/wire.ts';
import type { TestOptions, TestOrchestrator } from '../support/orchestrator.ts';
import type { VirtualClock } from '../support/time/virtual-clock.ts';
import {
  type ErrorReply,
  expectUnauthorized,
  SECONDS,
  startWithResources,
  type TokenReply,
} from './auth.fixture.ts';

const HOURS = 3_600_000;

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
const buy = (body: unknown) =>
  orchestrator.request<TokenReply & ErrorReply>('POST', '/auth/token', { key: null, body });

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

  it('are dead at once when they are revoked, on every path, the polled one too [key-revoked-within-seconds]', async () => {
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
