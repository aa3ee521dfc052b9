import { expect, it } from 'vitest';
import { createSandbox } from './sandbox.ts';

type Access = { base_url: string; api_key: string };

/** Opens a sandbox in the one at this origin, and asks it as its own client does. */
async function open(origin: string, key: string, options = {}) {
  const control = async (base: string, method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const reply = await fetch(base + path, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    // biome-ignore lint/suspicious/noExplicitAny: each endpoint has an answer of its own
    return { status: reply.status, body: (await reply.json()) as any };
  };
  const { status, body } = await control(`${origin}/control`, 'POST', '/sandboxes', options);
  expect(status).toBe(201);
  const at: Access = body.account.providers['provider-a'];
  return {
    id: body.id as string,
    at,
    market: body.account.marketplace as Access | undefined,
    own: (method: string, path: string, sent?: object) => control(body.control.base_url, method, path, sent),
    ask: async ({ base_url: base, api_key: apiKey }: Access, path: string) =>
      (await fetch(`${base}${path}`, { headers: { authorization: `Bearer ${apiKey}` } })).status,
    end: () => control(`${origin}/control`, 'DELETE', `/sandboxes/${body.id}`),
  };
}

it('opens sandboxes in one server, each with its own URLs, clock, faults and journal [sandbox-each]', async () => {
  await using sandbox = await createSandbox({ providers: ['a'], seed: 7 });
  const { origin } = await sandbox.listen();
  const [one, two] = [
    await open(origin, sandbox.controlKey),
    await open(origin, sandbox.controlKey, { seed: 'two', marketplace: true }),
  ];
  expect(one.at.base_url).toBe(`${origin}/sandboxes/${one.id}/providers/provider-a/v1`);
  expect((await one.own('GET', '/info')).body).toMatchObject({ seed: '7', account: { name: 'default' } });
  expect((await two.own('GET', '/info')).body.seed).toBe('two');
  const before = sandbox.clock.now();
  const { body: clock } = await one.own('POST', '/clock/advance', { by: '1h' });
  expect(Date.parse(clock.now)).toBe(before + 3_600_000);
  expect(Date.parse((await two.own('GET', '/clock')).body.now)).toBe(before);
  expect(sandbox.clock.now()).toBe(before);
  await one.own('POST', '/faults', { fault: 'http-500', must_trigger: true });
  await one.own('POST', '/faults', { fault: 'http-503', route: 'POST /volumes', must_trigger: true });
  expect([await two.ask(two.at, '/instances'), await one.ask(one.at, '/instances')]).toEqual([200, 500]);
  expect(await two.ask(two.market as Access, '/deployments')).toBe(200);
  expect((await one.own('GET', '/journal')).body.entries).toHaveLength(1);
  expect(await sandbox.control.journal.entries()).toEqual([]);
  expect((await one.end()).body.untriggered).toMatchObject([{ fault: 'http-503', hits: 0 }]);
  expect((await one.end()).status).toBe(404);
  expect([await one.ask(one.at, '/instances'), await two.ask(two.at, '/instances')]).toEqual([404, 200]);
});

it('opens one through a sandbox in process, and ends it with that', async () => {
  const sandbox = await createSandbox();
  const { id, account, control } = await sandbox.control.sandboxes.open({ providers: ['d'] });
  expect(control.base_url).toBe(`http://sandbox.test/sandboxes/${id}/control`);
  const { base_url: base = '', api_key: key } = account.providers['provider-d'] ?? {};
  const ask = () => sandbox.fetch(`${base}/instances`, { headers: { authorization: `Bearer ${key}` } });
  expect((await ask()).status).toBe(200);
  expect(await sandbox.control.sandboxes.end(id)).toEqual({ untriggered: [] });
  expect((await ask()).status).toBe(404);
  await sandbox.control.sandboxes.open();
  await expect(sandbox.control.sandboxes.open({ providers: ['z'] })).rejects.toMatchObject({ status: 400 });
  await sandbox.close();
});
