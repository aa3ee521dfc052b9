import { expect, it } from 'vitest';
import { createSandbox } from '../compose/sandbox/sandbox.ts';
import { assertNode } from './options.ts';
import type { Sandbox } from './sandbox.ts';

const SSH_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVvbPHlyOu4Rzn6yIy3N+mIZLDBkd5yTJPYJVgSuSMK test@example.com';

async function ask(
  { fetch }: Sandbox,
  { baseUrl, apiKey }: { baseUrl: string; apiKey: string },
  method: string,
  path: string,
  body?: unknown,
) {
  const response = await fetch(`${baseUrl}${path}`, {
    method,
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: each endpoint has an answer of its own
  return { status: response.status, body: (await response.json()) as any };
}

async function create(sandbox: Sandbox, at: { baseUrl: string; apiKey: string }) {
  const { body: offers } = await ask(sandbox, at, 'GET', '/availability');
  const [offer] = offers.configurations;
  const { status, body } = await ask(sandbox, at, 'POST', '/instances', {
    configuration_id: offer.id,
    region: offer.regions[0],
    image: offer.os_options[0],
    ssh_keys: [SSH_KEY],
    name: 'one',
  });
  expect([status, body.status]).toEqual([201, 'PROVISIONING']);
  return body as { id: string };
}

it('brings an instance ONLINE when time is advanced, and not before', async () => {
  await using sandbox = await createSandbox();
  const provider = sandbox.provider('a');
  const { id } = await create(sandbox, provider);
  await sandbox.clock.advance(1_000);
  expect((await ask(sandbox, provider, 'GET', `/instances/${id}`)).body.status).toBe('PROVISIONING');
  await sandbox.clock.advance(30_000);
  const { body } = await ask(sandbox, provider, 'GET', `/instances/${id}`);
  expect(body).toMatchObject({ status: 'ONLINE', public_ip: '203.0.113.1', ssh_port: 22 });
  expect(sandbox.clock.now()).toBe(Date.UTC(2026, 0, 1) + 31_000);
});

it('gives each account its own instances', async () => {
  await using sandbox = await createSandbox({ providers: ['b'] });
  const [mine, theirs] = await Promise.all([sandbox.account(), sandbox.account('theirs')]);
  const at = mine.providers['provider-b'];
  const other = theirs.providers['provider-b'];
  if (at === undefined || other === undefined) throw new Error('there is no key');
  const { id } = await create(sandbox, at);
  expect((await ask(sandbox, at, 'GET', '/instances')).body.instances).toHaveLength(1);
  expect((await ask(sandbox, other, 'GET', '/instances')).body.instances).toEqual([]);
  expect((await ask(sandbox, other, 'GET', `/instances/${id}`)).status).toBe(404);
});

it('starts each of the seven providers, with the rules of its profile', async () => {
  const providers = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
  await using sandbox = await createSandbox({ providers });
  const names = [...sandbox.providers.values()].map(({ name }) => name);
  expect(names).toEqual(providers.map((letter) => `provider-${letter}`));
  for (const provider of sandbox.providers.values())
    expect((await ask(sandbox, provider, 'GET', '/configurations')).status).toBe(200);
});

it('gives the same keys, ids and times for the same seed, and others for another', async () => {
  const history = async (seed: number) => {
    await using sandbox = await createSandbox({ seed });
    const provider = sandbox.provider('a');
    const { id } = await create(sandbox, provider);
    await sandbox.clock.advance(60_000);
    return [provider.apiKey, (await ask(sandbox, provider, 'GET', `/instances/${id}`)).body];
  };
  const first = await history(7);
  expect(await history(7)).toEqual(first);
  expect(await history(8)).not.toEqual(first);
});

it('passes time where an answer waits for it, and a frozen clock holds the answer', async () => {
  await using sandbox = await createSandbox();
  const { baseUrl } = sandbox.provider('a');
  const guess = () =>
    ask(sandbox, { baseUrl, apiKey: '' }, 'POST', '/auth/token', { api_key: 'berth_wrong' });
  const begunAt = sandbox.clock.now();
  for (let count = 0; count < 10; count++) expect((await guess()).status).toBe(401);
  expect(sandbox.clock.now()).toBe(begunAt);
  expect((await guess()).status).toBe(401);
  const passed = sandbox.clock.now() - begunAt;
  expect(passed).toBeGreaterThan(0);

  sandbox.clock.freeze();
  let isAnswered = false;
  const held = guess().finally(() => {
    isAnswered = true;
  });
  await sandbox.clock.settle();
  expect([isAnswered, sandbox.clock.now()]).toEqual([false, begunAt + passed]);
  await sandbox.clock.advance(10_000);
  expect((await held).status).toBe(401);
});

it('lets no time pass while a password is checked', async () => {
  await using sandbox = await createSandbox();
  const { baseUrl } = sandbox.provider('a');
  const before = sandbox.clock.now();
  const login = { username: 'nobody', password: 'a long password' };
  expect((await ask(sandbox, { baseUrl, apiKey: '' }, 'POST', '/auth/token', login)).status).toBe(401);
  expect(sandbox.clock.now()).toBe(before);
});

it('reports an unknown path and an unknown provider', async () => {
  await using sandbox = await createSandbox();
  expect((await sandbox.fetch('/elsewhere')).status).toBe(404);
  expect(await (await sandbox.fetch('/providers/provider-z/v1/instances')).json()).toMatchObject({
    error: { message: 'There is no provider provider-z in this sandbox.' },
  });
  await expect(createSandbox({ providers: ['z'] })).rejects.toThrow('There is no provider provider-z');
});

it.each(['instances', 'volumes'])('answers 404 for %s with an id that is no text', async (kind) => {
  await using sandbox = await createSandbox();
  const { baseUrl, apiKey } = sandbox.provider('a');
  const reply = await sandbox.fetch(`${baseUrl}/${kind}/%zz`, {
    headers: { authorization: `Bearer ${apiKey}` },
  });
  expect([reply.status, await reply.json()]).toMatchObject([404, { error: { code: 'not_found' } }]);
  expect(await sandbox.control.journal.entries()).toMatchObject([{ status: 404, resource: '%zz' }]);
});

it('answers a 429 of the marketplace with its own body, and other errors with the usual one', async () => {
  await using sandbox = await createSandbox({ marketplace: true });
  const { baseUrl = '', apiKey } = sandbox.defaultAccount.marketplace ?? {};
  const ask = async () => {
    const reply = await sandbox.fetch(`${baseUrl}/teams`, { headers: { authorization: `Bearer ${apiKey}` } });
    return [reply.status, reply.headers.get('retry-after'), await reply.json()];
  };
  await sandbox.faults.arm('http-429', { provider: 'marketplace', retry_after_s: 7 });
  const text = 'Answer of an armed fault: too_many_requests.';
  expect(await ask()).toEqual([429, '7', { error: 'RATE_LIMIT_EXCEEDED', message: text, retryAfter: 7 }]);
  await sandbox.faults.arm('http-503', { provider: 'marketplace' });
  expect(await ask()).toMatchObject([503, '2', { error: expect.any(String), code: 'UNAVAILABLE' }]);
});

it('refuses an option that there is not, and names the one that is like it', async () => {
  const options = { provider: ['b'] } as object;
  await expect(createSandbox(options)).rejects.toThrow(
    'createSandbox has no option provider: did you mean providers?',
  );
});

it.each<[string, object, string]>([
  ['a clock that there is not', { clock: 'virtul' }, 'clock expected one of "virtual", "real"'],
  ['providers that are no list', { providers: 'a,d' }, 'providers: expected a list'],
  ['no providers', { providers: [] }, 'providers expected at least one, or a catalog'],
  ['a start that is no number', { start_at: '2026-01-01' }, 'start_at: expected a number'],
  ['a misspelt phase', { timing: { bot: [1, 2] } }, 'timing'],
  ['a range upside down', { timing: { boot: [10, 5] } }, 'timing.boot expected the smaller of the two first'],
  ['debts', { marketplace: { credit_usd: -1 } }, 'marketplace'],
  ['a seed that is none', { seed: {} }, 'seed: expected a number, or a string'],
  ['an origin with a path', { origin: 'http://x/' }, 'origin expected an origin without a slash at its end'],
])('refuses %s', async (_what, options, words) => {
  const problem = await createSandbox(options).then(String, (error: Error) => error.message);
  expect(problem.replace(/: expected/, ' expected')).toContain(words.replace(/: expected/, ' expected'));
});

it.each(['20.20.2', '22.13.1'])('says of Node %s that it is too old', (version) => {
  expect(() => assertNode(version)).toThrow(`The sandbox needs Node 22.14 or later; this is ${version}.`);
  assertNode('22.14.0');
});
