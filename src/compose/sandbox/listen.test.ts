import { request } from 'node:http';
import { expect, it } from 'vitest';
import { createSandbox } from './sandbox.ts';
import { serveSandbox } from './serve.ts';

/** Sends a request with a `Host` of its own, as a page whose name was rebound to this address does. */
function ask(
  origin: string,
  path: string,
  { host, key, method = 'GET' }: { host: string; key?: string; method?: string },
): Promise<{ status: number | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { host, ...(key !== undefined && { authorization: `Bearer ${key}` }) };
    const sent = request(`${origin}${path}`, { method, headers, agent: false }, async (reply) => {
      let text = '';
      for await (const chunk of reply) text += chunk;
      resolve({ status: reply.statusCode, text });
    });
    sent.on('error', reject).end();
  });
}

it('listens at a port, for clients that take no fetch [sandbox-listen]', async () => {
  await using sandbox = await createSandbox({ providers: ['a', 'd'], marketplace: true });
  const before = await sandbox.account();
  const listener = await sandbox.listen();
  expect(listener.origin).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  const after = await sandbox.account();
  for (const { providers, marketplace } of [before, after, sandbox.defaultAccount]) {
    const each = [
      ...Object.values(providers).map((at) => [at, '/configurations'] as const),
      [marketplace, '/gpu-offers'] as const,
    ];
    for (const [at, path] of each) {
      expect(at?.baseUrl).toContain(listener.origin);
      const reply = await fetch(`${at?.baseUrl}${path}`, {
        headers: { authorization: `Bearer ${at?.apiKey}` },
      });
      expect(reply.status).toBe(200);
    }
  }
  const { baseUrl, apiKey } = sandbox.provider('a');
  const reply = await fetch(`${baseUrl}/instances/%zz`, { headers: { authorization: `Bearer ${apiKey}` } });
  expect([reply.status, await reply.json()]).toMatchObject([404, { error: { code: 'not_found' } }]);
  const { account } = await sandbox.control.info();
  expect(account.providers['provider-d']?.base_url).toBe(`${listener.origin}/providers/provider-d/v1`);
  await expect(sandbox.listen()).rejects.toThrow('The sandbox is served already');
  await listener.close();
  expect(before.providers['provider-a']?.baseUrl).toBe('http://sandbox.test/providers/provider-a/v1');
  await expect(fetch(listener.origin)).rejects.toThrow('fetch failed');
  await sandbox.listen();
});

it('may be told its origin, and frees its port when it is closed', async () => {
  const sandbox = await createSandbox({ origin: 'https://sandbox.example' });
  const { origin } = await sandbox.listen();
  expect(sandbox.provider('a').baseUrl).toBe('https://sandbox.example/providers/provider-a/v1');
  await sandbox.close();
  await expect(fetch(origin)).rejects.toThrow('fetch failed');
  await using other = await createSandbox();
  await other.listen({ port: Number(new URL(origin).port) });
  await using third = await createSandbox();
  await expect(third.listen({ port: Number(new URL(origin).port) })).rejects.toThrow(/port/);
  await third.listen();
});

it('draws the control key at random, unless it is given', async () => {
  await using one = await createSandbox({ seed: 1 });
  await using two = await createSandbox({ seed: 1 });
  expect(one.controlKey).toMatch(/^control_[\w-]{32}$/);
  expect(two.controlKey).not.toBe(one.controlKey);
  await using given = await createSandbox({ control_key: 'mine' });
  expect(given.controlKey).toBe('mine');
  expect((await given.control.info()).seed).toBe('1');
});

it('refuses the page of another origin, whose name was rebound to this address [sandbox-rebinding]', async () => {
  const { origin, sandbox, stop } = await serveSandbox({}, { hosts: ['sandbox.internal'] });
  const { port } = new URL(origin);
  const { controlKey: key } = sandbox;
  const { apiKey, baseUrl } = sandbox.provider('a');
  await sandbox.account('mine');
  for (const host of [`evil.example:${port}`, 'evil.example', '127.0.0.1.nip.io', 'localhost.evil.example']) {
    expect(await ask(origin, '/control/info', { host, key })).toEqual({
      status: 421,
      text: expect.stringContaining('To add a name, set --hosts.'),
    });
    expect((await ask(origin, '/control/reset', { host, key, method: 'POST' })).status).toBe(421);
    expect((await ask(origin, '/control/openapi.json', { host })).status).toBe(421);
    const { pathname } = new URL(`${baseUrl}/instances`);
    expect((await ask(origin, pathname, { host, key: apiKey })).status).toBe(421);
  }
  await expect(sandbox.account('mine')).rejects.toThrow('there is an account of that name already');
  for (const host of ['localhost', `LOCALHOST:${port}`, `127.0.0.1:${port}`, '[::1]', 'sandbox.internal:80'])
    expect((await ask(origin, '/control/info', { host, key })).status).toBe(200);
  await stop();
});
