import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createSandbox } from '../../compose/sandbox/sandbox.ts';
import { packageRoot } from '../../config/package-root.ts';
import { type Bench, benchOf, SSH_KEY, startBench } from '../faults/bench.fixture.ts';
import type { Sandbox } from '../sandbox.ts';
import type { ProviderOperator } from './client.ts';

let sandbox: Sandbox;
let d: ProviderOperator;
let b: ProviderOperator;
beforeAll(async () => {
  sandbox = await startBench();
  d = sandbox.control.operator('d');
  b = sandbox.control.operator('b');
});
afterAll(() => sandbox.close());

const OFFER = 'd-cpu-4x16';
const SPOT = 'b-rtx-4090-1x-spot';

// biome-ignore lint/suspicious/noExplicitAny: each endpoint has an answer of its own
type Answer = { status: number; body: any };

/** Sends a request to an operator API over HTTP. */
async function over(path: string, body?: object, key = sandbox.controlKey): Promise<Answer> {
  const response = await sandbox.fetch(`/control/providers/${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() };
}

const offered = async ({ ask }: Bench, path: string, id = OFFER) =>
  (await ask('GET', path)).body.configurations.find((offer: { id: string }) => offer.id === id);

it('serves the operator API of production to the control key only', async () => {
  const bench = await benchOf(sandbox);
  expect((await over('d/operator/v1/cordons')).body).toEqual({ cordons: [] });
  expect((await over('d/operator/v1/cordons', undefined, bench.apiKey)).status).toBe(401);
  expect((await over('d/operator/v1/cordons', undefined, 'wrong')).status).toBe(401);
  expect(await over('g/operator/v1/cordons')).toMatchObject({
    status: 404,
    body: {
      error: { message: 'This sandbox has no provider-g: it has provider-d, provider-e, provider-b.' },
    },
  });
  expect((await bench.ask('GET', '/operator/v1/cordons')).status).toBe(404);
  expect(Object.keys((await over('d/operator/openapi.json')).body.paths)).toContain('/cordons');
});

it('moves a price: offers show it, instances keep theirs, and a reset restores it', async () => {
  const bench = await benchOf(sandbox);
  const { id } = (await bench.order('one')).body;
  const { price_per_hour: was } = await offered(bench, '/configurations');
  const moved = await over(`d/operator/v1/offers/${OFFER}/price`, { price_per_hour: 2 * was });
  expect(moved.body).toEqual({ price_per_hour: 2 * was, instances: 0 });
  expect((await offered(bench, '/configurations')).price_per_hour).toBe(2 * was);
  expect((await offered(bench, '/availability')).price_per_hour).toBe(2 * was);
  expect((await bench.read(id)).body.price_per_hour).toBe(was);
  expect((await bench.order('two')).body.price_per_hour).toBe(2 * was);
  await sandbox.control.snapshots.take('moved');
  await sandbox.control.reset();
  const fresh = await benchOf(sandbox);
  expect((await offered(fresh, '/configurations')).price_per_hour).toBe(was);
  await sandbox.control.snapshots.restore('moved');
  expect((await offered(bench, '/configurations')).price_per_hour).toBe(2 * was);
  await d.reload();
  expect((await offered(bench, '/configurations')).price_per_hour).toBe(was);
});

it('moves a spot price: running SPOT instances cost it at once', async () => {
  const bench = await benchOf(sandbox, 'b');
  const { id } = (await bench.order('one')).body;
  const { spot_price_per_hour: was } = await offered(bench, '/availability', SPOT);
  expect((await bench.read(id)).body.price_per_hour).toBe(was);
  const moved = await b.movePrice({ offer: SPOT, spot_price_per_hour: was / 2 });
  expect(moved).toMatchObject({ spot_price_per_hour: was / 2, instances: 1 });
  for (const path of ['/availability', '/configurations'])
    expect((await offered(bench, path, SPOT)).spot_price_per_hour).toBe(was / 2);
  expect((await bench.read(id)).body.price_per_hour).toBe(was / 2);
});

it('refuses a price that no catalog can have, and changes nothing', async () => {
  const before = await offered(await benchOf(sandbox, 'b'), '/configurations', SPOT);
  await expect(b.movePrice({ offer: SPOT, spot_price_per_hour: 1_000 })).rejects.toThrow(
    /spot_price_per_hour: expected at most price_per_hour/,
  );
  await expect(d.movePrice({ offer: OFFER, spot_price_per_hour: 1 })).rejects.toThrow(
    /only an offer of instance_type SPOT/,
  );
  await expect(d.movePrice({ offer: 'none', price_per_hour: 1 })).rejects.toThrow(/There is no offer none/);
  await expect(d.movePrice({ offer: OFFER })).rejects.toThrow(/expected price_per_hour/);
  expect(await offered(await benchOf(sandbox, 'b'), '/configurations', SPOT)).toEqual(before);
});

it('logs in with a user name and a password, and with tokens of the lifetime that was set', async () => {
  const bench = await benchOf(sandbox);
  const login = (password: string) => bench.ask('POST', '/auth/token', { username: bench.account, password });
  const before = sandbox.clock.now();
  await d.setPassword({ account: bench.account, password: 'a long password' });
  expect(sandbox.clock.now()).toBe(before);
  expect((await login('a wrong password')).status).toBe(401);
  expect((await login('a long password')).body.expires_in).toBe(3600);
  expect((await over('d/operator/v1/tokens/lifetime', { expires_in: 30 })).body).toEqual({ expires_in: 30 });
  const { body } = await login('a long password');
  expect(body.expires_in).toBe(30);
  const read = async () =>
    (
      await sandbox.fetch(`${bench.baseUrl}/instances`, {
        headers: { authorization: `Bearer ${body.access_token}` },
      })
    ).status;
  expect(await read()).toBe(200);
  await sandbox.clock.advance(30_000);
  expect(await read()).toBe(401);
  await d.setTokenLifetime({ account: bench.account, expires_in: 5 });
  expect((await login('a long password')).body.expires_in).toBe(5);
  const other = await benchOf(sandbox);
  const token = async () => (await other.ask('POST', '/auth/token', { api_key: other.apiKey })).body;
  expect((await token()).expires_in).toBe(30);
  await expect(d.setTokenLifetime({ account: 'none', expires_in: 5 })).rejects.toThrow(/no account none/);
});

it('sells what a changed catalog file has after a reload', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'berth-catalog-'));
  try {
    const catalog = join(folder, 'catalog.yaml');
    copyFileSync(join(packageRoot(), 'fixtures', 'catalogs', 'provider-d.yaml'), catalog);
    await using own = await createSandbox({ catalog });
    const { baseUrl, apiKey } = own.provider('custom');
    // biome-ignore lint/suspicious/noExplicitAny: each endpoint has an answer of its own
    const ask = async (path: string, body?: object): Promise<any> => {
      const response = await own.fetch(`${baseUrl}${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return response.json();
    };
    writeFileSync(catalog, readFileSync(catalog, 'utf8').replaceAll(OFFER, 'renamed'));
    const reloaded = await own.control.operator('custom').reload();
    expect(reloaded).toMatchObject({ added: ['offer renamed'], removed: [`offer ${OFFER}`] });
    const order = { configuration_id: 'renamed', region: 'us-phoenix', image: 'ubuntu-24.04' };
    const { id } = await ask('/instances', { ...order, ssh_keys: [SSH_KEY], name: 'one' });
    await own.clock.advance(60_000);
    expect(await ask(`/instances/${id}`)).toMatchObject({ status: 'ONLINE' });
    writeFileSync(catalog, 'offers: none');
    await expect(own.control.operator('custom').reload()).rejects.toThrow(/catalog\.yaml/);
    expect((await ask('/configurations')).configurations.map((offer: { id: string }) => offer.id)).toContain(
      'renamed',
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});

it('plays the requests of a scenario to the operator API', async () => {
  await using own = await createSandbox({ providers: ['d'] });
  await own.control.play({
    name: 'moved',
    steps: [
      {
        do: 'request',
        provider: 'd',
        method: 'POST',
        path: `/operator/v1/offers/${OFFER}/price`,
        body: { price_per_hour: 7 },
        status: 200,
      },
    ],
  });
  expect(await offered(await benchOf(own), '/configurations')).toMatchObject({ price_per_hour: 7 });
});
