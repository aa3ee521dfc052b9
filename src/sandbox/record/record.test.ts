import { describe, expect, it } from 'vitest';
import { newPublicKey } from '../../../test/support/doubles/ssh-keys.ts';
import { startTestOrchestrator } from '../../../test/support/orchestrator.ts';
import { Recorder } from './recorder.ts';
import { Replay } from './replay.ts';

/** Starts a recorder in front of an orchestrator. `change` may alter its answers. */
async function record(
  change: (reply: Response, request: Request) => Response | Promise<Response> = (reply) => reply,
) {
  const orchestrator = await startTestOrchestrator();
  let now = Date.UTC(2026, 0, 1);
  const seen: string[] = [];
  const recorder = new Recorder({
    target: new URL('https://gpu.example/api/v1'),
    now: () => now++,
    fetch: async (request) => {
      seen.push(request.url);
      const { pathname, search } = new URL(request.url);
      const path = pathname.replace('/api/v1', '/v1') + search;
      return change(await orchestrator.app.fetch(new Request(`http://provider${path}`, request)), request);
    },
  });
  const send = async (method: string, path: string, body?: object) => {
    const reply = await recorder.fetch(request(method, path, body, orchestrator.key));
    const text = await reply.text();
    const isJson = reply.headers.get('content-type')?.startsWith('application/json');
    return { status: reply.status, text, body: isJson ? JSON.parse(text) : undefined };
  };
  return { recorder, send, seen, [Symbol.asyncDispose]: () => orchestrator[Symbol.asyncDispose]() };
}

function request(method: string, path: string, body?: object, key = 'any'): Request {
  return new Request(`http://recorder/v1${path}`, {
    method,
    headers: {
      Authorization: `Bearer ${key}`,
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

const create = () => ({
  configuration_id: 'h100-sxm-1x',
  region: 'eu-frankfurt',
  ssh_keys: [newPublicKey()],
  name: 'demo',
});

it('hands requests on to the target, and finds nothing in one that keeps the contract [sandbox-record]', async () => {
  await using target = await record();
  const made = await target.send('POST', '/instances', create());
  expect(made.status).toBe(201);
  await target.send('GET', `/instances/${made.body.id}?region=eu-frankfurt`);
  await target.send('GET', '/volumes/locations');
  await target.send('GET', '/instances/unknown');
  await target.send('DELETE', `/instances/${made.body.id}`);
  expect(target.seen[1]).toBe(`https://gpu.example/api/v1/instances/${made.body.id}?region=eu-frankfurt`);
  const exchanges = await target.recorder.exchanges();
  expect(exchanges.map(({ request, response }) => [request.method, response.status])).toEqual([
    ['POST', 201],
    ['GET', 200],
    ['GET', 200],
    ['GET', 404],
    ['DELETE', 200],
  ]);
  expect(exchanges.flatMap(({ violations = [] }) => violations)).toEqual([]);
  expect(exchanges[0]?.response.body).toEqual(made.body);
});

it('answers 502 where the target is not reached, and keeps that', async () => {
  const recorder = new Recorder({
    target: new URL('https://gpu.example/v1'),
    now: () => 0,
    fetch: () => Promise.reject(new TypeError('fetch failed', { cause: new Error('ECONNREFUSED') })),
  });
  const reply = await recorder.fetch(request('GET', '/instances'));
  expect([reply.status, await reply.json()]).toEqual([
    502,
    { error: { code: 'unavailable', message: 'The target could not be reached: ECONNREFUSED' } },
  ]);
  expect(await recorder.exchanges()).toMatchObject([
    { response: { status: null }, violations: [{ in: 'response' }] },
  ]);
});

describe('violations of the contract are reported', () => {
  const changed = (change: (body: Record<string, unknown>) => void) => async (reply: Response) => {
    const body = await reply.json();
    change(body as Record<string, unknown>);
    return Response.json(body, { status: reply.status });
  };

  it.each<[string, (reply: Response) => Promise<Response> | Response, object]>([
    [
      'a price as text',
      changed((body) => Object.assign(body, { price_per_hour: '1.99' })),
      { path: 'price_per_hour', message: 'expected a number, got a string' },
    ],
    [
      'a status that is none',
      changed((body) => Object.assign(body, { status: 'RUNNING' })),
      { path: 'status', message: expect.stringContaining('expected one of "PROVISIONING", "ONLINE"') },
    ],
    [
      'a field that is missing',
      changed((body) => Reflect.deleteProperty(body, 'created_at')),
      { path: 'created_at', message: expect.stringContaining('is required') },
    ],
    [
      'a page of HTML',
      () => new Response('<html>', { status: 502, headers: { 'Content-Type': 'text/html' } }),
      { path: '', message: 'expected Content-Type: application/json, got text/html' },
    ],
    [
      'an error without the envelope',
      () => Response.json({ message: 'no' }, { status: 500 }),
      { path: 'error', message: 'is required: an object' },
    ],
    [
      'a redirect',
      () => new Response(null, { status: 302, headers: { Location: 'https://elsewhere.example' } }),
      { path: '', message: 'the status 302 has no meaning in the contract' },
    ],
  ])('%s', async (_name, change, violation) => {
    await using target = await record(change);
    await target.send('POST', '/instances', create());
    const [exchange] = await target.recorder.exchanges();
    expect(exchange?.violations).toEqual(expect.arrayContaining([{ in: 'response', ...violation }]));
  });

  it('a status that cannot follow, and an instance that is back from the dead', async () => {
    const shown = ['ONLINE', 'PROVISIONING', 'gone', 'ONLINE'];
    const instance = {
      id: 'i-1',
      configuration_id: 'x',
      region: 'eu',
      created_at: '2026-01-01T00:00:00Z',
      updated_at: '2026-01-01T00:00:00Z',
    };
    await using target = await record(() => {
      const status = shown.shift();
      return status === 'gone'
        ? Response.json({ error: { code: 'not_found', message: 'no' } }, { status: 404 })
        : Response.json({ ...instance, status });
    });
    for (const _answer of [...shown]) await target.send('GET', '/instances/i-1?region=eu');
    const exchanges = await target.recorder.exchanges();
    expect(exchanges.map(({ violations }) => violations?.[0]?.message)).toEqual([
      undefined,
      'ONLINE may not become PROVISIONING',
      undefined,
      'it was gone (404) before, and is ONLINE now',
    ]);
  });

  it('a request that the client got wrong, and a path that is not in the contract', async () => {
    await using target = await record(async () => Response.json({ locations: [] }));
    await target.send('POST', '/volumes/vol-1/attach', {});
    await target.send('GET', '/machines');
    const [attach, machines] = await target.recorder.exchanges();
    expect(attach?.violations?.[0]).toMatchObject({ in: 'request', path: 'instance_ids' });
    expect(machines?.violations).toEqual([
      { in: 'request', path: '', message: 'GET /v1/machines is not in the contract' },
    ]);
  });
});

describe('a replay', () => {
  it('answers each request as the target did, in its order, and repeats the last read [sandbox-replay]', async () => {
    await using target = await record();
    const body = create();
    const made = await target.send('POST', '/instances', body);
    const path = `/instances/${made.body.id}?region=eu-frankfurt`;
    const reads = [await target.send('GET', path)];
    await target.send('DELETE', path);
    reads.push(await target.send('GET', path));
    const replay = new Replay(await target.recorder.exchanges());
    const ask = async (method: string, at: string, sent?: object) => {
      const reply = await replay.fetch(request(method, at, sent));
      return { status: reply.status, text: await reply.text() };
    };
    expect(await ask('POST', '/instances', { ...body, name: 'another' })).toMatchObject({
      status: 201,
      text: made.text,
    });
    for (const { status, text } of [...reads, ...reads.slice(-1)])
      expect(await ask('GET', path)).toEqual({ status, text });
    expect((await ask('DELETE', path)).status).toBe(200);
  });

  it('keeps x-request-id and cache-control', async () => {
    await using target = await record((reply) => {
      reply.headers.set('Cache-Control', 'no-store');
      reply.headers.set('X-Request-Id', 'req-7');
      return reply;
    });
    await target.send('GET', '/volumes/locations');
    const replay = new Replay(await target.recorder.exchanges());
    const { headers } = await replay.fetch(request('GET', '/volumes/locations'));
    expect([headers.get('cache-control'), headers.get('x-request-id')]).toEqual(['no-store', 'req-7']);
  });

  it('takes any text in place of a credential', async () => {
    await using target = await record(async () => Response.json({ locations: [] }));
    await target.send('GET', '/volumes/locations?api_key=sk_live_123456&region=eu');
    const replay = new Replay(await target.recorder.exchanges());
    const ask = async (path: string) => (await replay.fetch(request('GET', path))).status;
    expect(await ask('/volumes/locations?api_key=another&region=us')).toBe(501);
    expect(await ask('/volumes/locations?api_key=another&region=eu')).toBe(200);
  });

  it('starts again with `loop`, and when it is rewound', async () => {
    await using target = await record();
    const made = await target.send('POST', '/instances', create());
    const path = `/instances/${made.body.id}`;
    const shown = [
      await target.send('GET', path),
      await target.send('DELETE', path),
      await target.send('GET', path),
    ];
    const exchanges = await target.recorder.exchanges();
    const replay = new Replay(exchanges, { loop: true });
    const ask = async (method: string, at: string) => (await replay.fetch(request(method, at))).status;
    for (let round = 0; round < 3; round++)
      expect([
        await ask('POST', '/instances'),
        await ask('GET', path),
        await ask('DELETE', path),
        await ask('GET', path),
        await ask('GET', path),
      ]).toEqual([201, ...shown.map(({ status }) => status), shown[2]?.status]);
    replay.rewind();
    expect(await ask('GET', path)).toBe(200);
    const unanswered: string[] = [];
    const once = new Replay(exchanges, { unanswered: (sentence) => unanswered.push(sentence) });
    await once.fetch(request('POST', '/instances'));
    expect((await once.fetch(request('POST', '/instances'))).status).toBe(501);
    expect(unanswered).toEqual([
      'The recording has no answer to POST /v1/instances; all that it has were given: with --loop it starts again.',
    ]);
  });

  it('prefers the exchange with the same body, and names the nearest request if none matches', async () => {
    const answer = (name: string) => ({
      at_ms: 0,
      request: { method: 'POST', path: '/v1/volumes', body: { name } },
      response: { status: 201, headers: {}, body: { name } },
    });
    const replay = new Replay([answer('a'), answer('b')]);
    const post = (name: string) => replay.fetch(request('POST', '/volumes', { name }));
    expect(await (await post('b')).json()).toEqual({ name: 'b' });
    const missing = await replay.fetch(request('GET', '/volume'));
    expect([missing.status, await missing.json()]).toEqual([
      501,
      {
        error: {
          code: 'not_recorded',
          message:
            'The recording has no answer to GET /v1/volume; the nearest recorded request is POST /v1/volumes.',
        },
      },
    ]);
    expect(await (await post('c')).json()).toEqual({ name: 'a' });
    expect((await post('c')).status).toBe(501);
  });
});
