import { afterAll, beforeAll, expect, it } from 'vitest';
import { createSandbox } from '../../compose/sandbox/sandbox.ts';
import { benchOf, startBench } from '../faults/bench.fixture.ts';
import type { Sandbox } from '../sandbox.ts';
import type { ProviderOperator } from './client.ts';

let sandbox: Sandbox;
let d: ProviderOperator;
beforeAll(async () => {
  sandbox = await startBench();
  d = sandbox.control.operator('d');
});
afterAll(() => sandbox.close());

const OFFER = 'd-cpu-4x16';

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

it('logs in with a user name and a password, and with its token until that expires', async () => {
  const bench = await benchOf(sandbox);
  const login = (password: string) => bench.ask('POST', '/auth/token', { username: bench.account, password });
  const before = sandbox.clock.now();
  await d.setPassword({ account: bench.account, password: 'a long password' });
  expect(sandbox.clock.now()).toBe(before);
  expect((await login('a wrong password')).status).toBe(401);
  const { body } = await login('a long password');
  expect(body.expires_in).toBe(3600);
  const read = async () =>
    (
      await sandbox.fetch(`${bench.baseUrl}/instances`, {
        headers: { authorization: `Bearer ${body.access_token}` },
      })
    ).status;
  expect(await read()).toBe(200);
  await sandbox.clock.advance('1h');
  expect(await read()).toBe(401);
});

it('makes no key that has expired already', async () => {
  const { account } = await benchOf(sandbox);
  const expires_at = new Date(sandbox.clock.now()).toISOString();
  await expect(d.createKey({ account, expires_at })).rejects.toThrow(
    `expires_at ${expires_at} is in the past: give a future time.`,
  );
});

it('plays the requests of a scenario to the operator API', async () => {
  await using own = await createSandbox({ providers: ['d'] });
  await own.control.play({
    name: 'cordoned',
    steps: [
      {
        do: 'request',
        provider: 'd',
        method: 'POST',
        path: '/operator/v1/cordons',
        body: { kind: 'offer', name: OFFER },
        status: 200,
      },
    ],
  });
  const { configurations } = (await (await benchOf(own)).ask('GET', '/availability')).body;
  expect(configurations.map((offer: { id: string }) => offer.id)).not.toContain(OFFER);
});
