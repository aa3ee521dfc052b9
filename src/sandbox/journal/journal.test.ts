import { expect, it } from 'vitest';
import { nextTurn } from '../../ports/clock.ts';
import { KeptHeaders } from './entry.ts';
import { Journal } from './journal.ts';

/** The first 16 hexadecimal digits of the SHA-256 of `secret`. */
const SECRET_DIGEST = '2bb80d537b1da3e3';
const START = Date.UTC(2026, 0, 1);

function start() {
  const clock = { now: START };
  const names = new Map([['secret', 'provider-a/me']]);
  const headers = new KeptHeaders((key) => names.get(key));
  const journal = new Journal(() => clock.now, { headers });
  const send = async (
    method: string,
    path: string,
    answer: Response | Error,
    { provider = 'provider-a', body, headers = {}, account }: Sent = {},
  ): Promise<Response> => {
    const request = new Request(`http://sandbox${path}`, {
      method,
      headers: { 'Content-Type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const exchange = { provider, request, ...(account !== undefined && { account }) };
    return journal.layer(exchange, async (sent) => {
      await sent.text();
      if (answer instanceof Error) throw answer;
      return answer;
    });
  };
  return { clock, journal, send };
}

interface Sent {
  provider?: string;
  body?: unknown;
  headers?: Record<string, string>;
  account?: string;
}

it('keeps each exchange as its caller saw it, and both still read their bodies', async () => {
  const { journal, send, clock } = start();
  const reply = await send(
    'POST',
    '/v1/instances',
    Response.json({ id: 'i-1', status: 'PROVISIONING' }, { status: 201, headers: { ETag: '"1"' } }),
    {
      body: { name: 'demo' },
      headers: { Authorization: 'Bearer secret', 'Idempotency-Key': 'k', 'User-Agent': 'client/1.2' },
      account: 'me',
    },
  );
  expect(await reply.json()).toEqual({ id: 'i-1', status: 'PROVISIONING' });
  clock.now += 1_500;
  await send('GET', '/v1/instances/i-1?region=eu', Response.json({ status: 'ONLINE' }));
  expect(await journal.entries()).toEqual([
    {
      number: 1,
      at: '2026-01-01T00:00:00.000Z',
      provider: 'provider-a',
      account: 'me',
      method: 'POST',
      path: '/v1/instances',
      operation: 'createInstance',
      resource: 'i-1',
      request: {
        headers: {
          authorization: `Bearer sha256:${SECRET_DIGEST} (provider-a/me)`,
          'content-type': 'application/json',
          'idempotency-key': 'k',
          'user-agent': 'client/1.2',
        },
        body: { name: 'demo' },
      },
      status: 201,
      response: {
        headers: { 'content-type': 'application/json', etag: '"1"' },
        body: { id: 'i-1', status: 'PROVISIONING' },
      },
      duration_ms: 0,
    },
    expect.objectContaining({
      number: 2,
      at: '2026-01-01T00:00:01.500Z',
      operation: 'getInstance',
      resource: 'i-1',
      path: '/v1/instances/i-1?region=eu',
    }),
  ]);
});

it('shows no secret', async () => {
  const { journal, send } = start();
  await send('POST', '/v1/auth/token', Response.json({ access_token: 'secret-1', expires_in: 60 }), {
    body: { api_key: 'secret-2' },
    headers: { Authorization: 'Bearer secret-3' },
  });
  const [entry] = await journal.entries();
  expect(entry).toMatchObject({ operation: 'issueToken', request: { body: { api_key: '[hidden]' } } });
  expect(JSON.stringify(entry)).not.toContain('secret');
});

it.each([
  ['Bearer  unknown-secret', /^Bearer {2}sha256:[0-9a-f]{16} \(another credential\)$/],
  ['bearer secret', /^bearer sha256:2bb80d537b1da3e3 \(provider-a\/me\)$/],
  ['Basic c2VjcmV0OnNlY3JldA==', /^Basic sha256:[0-9a-f]{16} \(another credential\)$/],
  ['secret', /^sha256:2bb80d537b1da3e3 \(provider-a\/me\)$/],
  ['secret-1 secret-2', /^sha256:[0-9a-f]{16} \(another credential\)$/],
])('shows a digest for the credential %j', async (authorization, shown) => {
  const { journal, send } = start();
  await send('GET', '/v1/instances', new Response('[]'), {
    headers: { Authorization: authorization, Cookie: 'secret' },
  });
  const [entry] = await journal.entries();
  expect(entry?.request.headers['authorization']).toMatch(shown);
  expect(JSON.stringify(entry)).not.toMatch(/secret|c2Vj/);
});

it('shows nothing of JSON that is nested so deep that its secrets are not found', async () => {
  const { journal, send } = start();
  const deep = `{"access_token":"secret-1","more":${'['.repeat(20_000)}${']'.repeat(20_000)}}`;
  await send(
    'POST',
    '/v1/auth/token',
    new Response(deep, { headers: { 'Content-Type': 'application/json' } }),
  );
  const [entry] = await journal.entries();
  expect(entry?.response.body).toBe('[nested too deeply]');
});

it('gives the reason for an incomplete answer: a broken connection, or a broken body', async () => {
  const { journal, send } = start();
  await expect(send('GET', '/v1/instances', new Error('connection reset'))).rejects.toThrow('reset');
  let chunks = 0;
  const half = new ReadableStream({
    async pull(controller) {
      if (chunks++ === 0) return controller.enqueue(new TextEncoder().encode('{"inst'));
      await nextTurn();
      controller.error(new Error('reset'));
    },
  });
  const reply = await send('GET', '/v1/instances', new Response(half));
  await expect(reply.text()).rejects.toThrow();
  expect(await journal.entries()).toMatchObject([
    { status: null, response: { problem: 'connection reset' } },
    { status: 200, response: { body: '{"inst', problem: 'the answer broke off after 6 bytes' } },
  ]);
});

it('waits for no body that is still coming', async () => {
  const { journal, send } = start();
  const endless = new ReadableStream({
    start: (controller) => controller.enqueue(new TextEncoder().encode('[1,')),
  });
  await send('GET', '/v1/instances', new Response(endless));
  const [entry] = await journal.entries();
  expect(entry?.response).toMatchObject({ body: '[1,', problem: '3 bytes of the answer came so far' });
});

it('keeps the server’s own answer when a fault changed it for the caller', async () => {
  const { journal } = start();
  const request = new Request('http://sandbox/v1/instances', { method: 'POST', body: '{}' });
  const exchange = { provider: 'provider-a', request };
  await journal
    .layer(exchange, async () => {
      await journal.serverLayer({ ...exchange }, async () => Response.json({ id: 'i-1' }, { status: 201 }));
      journal.noteFault('lost-201');
      throw new Error('connection reset');
    })
    .catch(() => undefined);
  expect(await journal.entries({ fault: 'lost-201' })).toMatchObject([
    { status: null, server: { status: 201, resource: 'i-1' }, faults: ['lost-201'] },
  ]);
  expect(await journal.entries({ fault: 'other' })).toEqual([]);
});

it('finds entries by each of their properties', async () => {
  const { journal, send, clock } = start();
  await send('POST', '/v1/instances', Response.json({ id: 'i-1' }, { status: 201 }), { account: 'one' });
  clock.now += 10_000;
  await send('GET', '/v1/instances/i-1?region=eu', Response.json({}), { account: 'one' });
  await send('GET', '/v1/instances/i-2', Response.json({}, { status: 404 }), { account: 'two' });
  await send('GET', '/api/deployments/i-1', Response.json({}), { provider: 'marketplace' });
  await expect(send('DELETE', '/v1/instances/i-1', new Error('reset'))).rejects.toThrow();
  const numbers = async (filter: Parameters<Journal['entries']>[0]) =>
    (await journal.entries(filter)).map(({ number }) => number);
  expect(await numbers({ provider: 'marketplace' })).toEqual([4]);
  expect(await numbers({ account: 'one' })).toEqual([1, 2]);
  expect(await numbers({ method: 'GET', provider: 'provider-a' })).toEqual([2, 3]);
  expect(await numbers({ operation: 'getInstance' })).toEqual([2, 3]);
  expect(await numbers({ resource: 'i-1' })).toEqual([1, 2, 4, 5]);
  expect(await numbers({ path: '/v1/instances/i-1' })).toEqual([2, 5]);
  expect(await numbers({ path: '/v1/*/i-*' })).toEqual([2, 3, 5]);
  expect(await numbers({ path: '*?region=*' })).toEqual([2]);
  expect(await numbers({ path: '/v1/instances/i-1*1' })).toEqual([]);
  expect(await numbers({ status: '4xx' })).toEqual([3]);
  expect(await numbers({ status: '201' })).toEqual([1]);
  expect(await numbers({ status: 'none' })).toEqual([5]);
  expect(await numbers({ since: 3 })).toEqual([4, 5]);
  expect(await numbers({ after: '2026-01-01T00:00:05Z', limit: 2 })).toEqual([4, 5]);
  expect(await numbers({ before: '2026-01-01T00:00:05Z' })).toEqual([1]);
  journal.clear();
  expect(await numbers({})).toEqual([]);
});

it('is bounded: the newest exchanges are kept', async () => {
  const { journal, send } = start();
  for (let count = 0; count < 20_001; count++) await send('GET', '/v1/instances', new Response());
  expect(journal.count).toBe(20_001);
  const kept = await journal.entries();
  expect([kept.length, kept.at(0)?.number, kept.at(-1)?.number]).toEqual([10_000, 10_002, 20_001]);
  expect(journal.dropped).toBe(10_001);
});
