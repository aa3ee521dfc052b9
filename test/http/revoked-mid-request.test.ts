import { afterAll, beforeAll, expect, it } from 'vitest';
import { digestSecret } from '../../src/keys/api-key.ts';
import { revokeKey as revokeUserKey } from '../../src/marketplace/teams/keys.ts';
import { revokeOperatorKey } from '../../src/operator-kit/keys.ts';
import { createKey, DEFAULT_ACCOUNT, revokeKey } from '../../src/orchestrator/accounts/accounts.ts';
import type { Store } from '../../src/orchestrator/model/store.ts';
import { systemRandom } from '../../src/runtime/system.ts';
import { fillPath, routes } from '../support/http/routes.ts';
import { startTestMarketplace, type TestMarketplace } from '../support/marketplace.ts';
import { startTestOrchestrator, type TestOrchestrator } from '../support/orchestrator.ts';
import { openTestStore } from '../support/rows/stores.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

const SECONDS = 1_000;

let clock: VirtualClock;
let berth: TestOrchestrator;
let market: TestMarketplace;

beforeAll(async () => {
  clock = new VirtualClock();
  berth = await startTestOrchestrator({ clock });
  market = await startTestMarketplace({ clock });
});
afterAll(async () => {
  await market[Symbol.asyncDispose]();
  await berth[Symbol.asyncDispose]();
});

/** A request whose body comes when `meanwhile` is done: the server has read its head by then. */
function slowly(
  path: string,
  headers: Record<string, string>,
  { body, meanwhile }: { body: string; meanwhile: () => Promise<void> },
): Request {
  const stream = new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        await meanwhile();
        controller.enqueue(Buffer.from(body));
        controller.close();
      },
    },
    { highWaterMark: 0 },
  );
  const sized = { ...headers, 'content-length': String(body.length) };
  const init = { method: 'POST', headers: sized, body: stream, duplex: 'half' };
  return new Request(`http://berth.test${path}`, init as RequestInit);
}

const json = (key: string) => ({ authorization: `Bearer ${key}`, 'content-type': 'application/json' });

const parts = () => ({ store: berth.store, clock, random: systemRandom });

async function revokeOperators(): Promise<void> {
  for (const { id } of await berth.store.read.operatorKeys.list()) await revokeOperatorKey(berth, id);
}

/** The bodies that routes need. */
const BODIES: Record<string, object> = {
  '/instances': { configuration_id: 'cpu-small', region: 'eu-west', ssh_keys: ['ssh-ed25519 A'] },
  '/volumes': { name: 'data', size_gb: 10, region: 'eu-west' },
  '/volumes/{volumeId}/attach': { instance_ids: ['inst-1'] },
  '/x/volumes/{volumeId}/resize': { size_gb: 20 },
};
const writes = routes.filter(({ method, isPublic }) => method !== 'GET' && !isPublic);
const toUrl = (path: string) => `/v1${fillPath(path, { instanceId: 'inst-1', volumeId: 'vol-1' })}`;

it.each(writes.filter(({ method }) => method !== 'DELETE'))(
  'a key of an account that is revoked while the body of $method $path is on the way does nothing [revoked-mid-request]',
  async ({ path }) => {
    const { key, record } = await createKey(parts(), DEFAULT_ACCOUNT);
    const revoke = async (): Promise<void> => {
      await revokeKey(parts(), record.id);
      await clock.advance(3 * SECONDS);
    };
    const body = JSON.stringify(BODIES[path] ?? {});
    const request = slowly(toUrl(path), json(key), { body, meanwhile: revoke });
    expect((await berth.app.fetch(request)).status).toBe(401);
  },
);

it('nor does one that was revoked elsewhere, while it is cached [revoked-elsewhere]', async () => {
  const store = await openTestStore();
  // A commit of another server is not heard.
  const deaf: Store = { ...store, subscribe: ({ credentialsEnded: _, ...heard }) => store.subscribe(heard) };
  await using server = await startTestOrchestrator({ clock, store: deaf });
  for (const { method, path } of writes) {
    const { key, record } = await createKey({ ...parts(), store }, DEFAULT_ACCOUNT);
    const send = (at: string, init: object = {}) =>
      server.app.fetch(new Request(`http://berth.test${at}`, { headers: json(key), ...init }));
    expect((await send('/v1/volumes/locations')).status).toBe(200);
    await revokeKey({ ...parts(), store }, record.id);
    const body = method === 'DELETE' ? null : JSON.stringify(BODIES[path] ?? {});
    expect([method, path, (await send(toUrl(path), { method, body })).status]).toEqual([method, path, 401]);
  }
});

it('nor does one of a user of the marketplace [user-revoked-mid-request]', async () => {
  const revoke = async (): Promise<void> => {
    const key = await market.store.read.keys.byDigest(digestSecret(market.user.key));
    await revokeUserKey(market, key?.id ?? '');
    await clock.advance(3 * SECONDS);
  };
  const body = JSON.stringify({ name: 'renamed' });
  const request = slowly('/api/deployments/dep-1/pause', json(market.user.key), { body, meanwhile: revoke });
  expect((await market.marketplace.app.fetch(request)).status).toBe(401);
});

it('nor does the key of an operator [operator-revoked-mid-request]', async () => {
  const key = await berth.addOperator('ann');
  const body = JSON.stringify({ name: 'made-by-ann' });
  const request = slowly('/operator/v1/accounts', json(key), { body, meanwhile: revokeOperators });
  expect((await berth.operator.fetch(request)).status).toBe(401);
  expect(await berth.store.read.credentials.accountByName('made-by-ann')).toBeNull();
});

it('nor does a form of the console that began with it [form-revoked-mid-request]', async () => {
  const key = await berth.addOperator('bea');
  const post = { method: 'POST', body: new URLSearchParams({ key }) };
  const login = await berth.console.fetch(new Request('http://berth.test/console/login', post));
  const cookie = login.headers.get('set-cookie')?.split(';')[0] ?? '';
  const page = await berth.console.fetch(
    new Request('http://berth.test/console/cordons', { headers: { cookie } }),
  );
  const csrf = /name="csrf" value="([^"]+)"/.exec(await page.text())?.[1] ?? '';
  const headers = { cookie, 'content-type': 'application/x-www-form-urlencoded' };
  const body = new URLSearchParams({ csrf, kind: 'region', name: 'eu-frankfurt' }).toString();
  const request = slowly('/console/cordons/add', headers, { body, meanwhile: revokeOperators });
  expect((await berth.console.fetch(request)).headers.get('location')).toContain('/console/login');
  expect(await berth.store.read.cordons.list()).toEqual([]);
});
