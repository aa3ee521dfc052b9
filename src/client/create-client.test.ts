import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { VirtualClock } from '../../test/support/time/virtual-clock.ts';
import {
  answerJson,
  configurationAnswer,
  instanceAnswer,
  startAnsweringServer,
} from './answering-server.fixture.ts';
import { clientOf, KEY, problemOf, read, write } from './client.fixture.ts';
import type { OrchestratorClient } from './orchestrator-client.ts';

describe('requests', () => {
  it('carry the key, the region and the idempotency key', async () => {
    await using server = await startAnsweringServer((_, response) =>
      answerJson(response, 201, instanceAnswer),
    );
    const client = clientOf(server.baseUrl);
    await write(client);
    await client.stopInstance('i-1', 'eu-frankfurt');
    expect(server.received).toMatchObject([
      {
        method: 'POST',
        url: '/v1/instances',
        headers: {
          authorization: `Bearer ${KEY}`,
          'idempotency-key': 'dep-1',
          'content-type': 'application/json',
        },
        body: '{"configuration_id":"h100-1x","region":"eu-frankfurt","ssh_keys":["ssh-ed25519 AAAA"]}',
      },
      { method: 'POST', url: '/v1/instances/i-1/stop?region=eu-frankfurt', body: '' },
    ]);
  });

  it('encode an id, and are not sent for an id that changes the path', async () => {
    await using server = await startAnsweringServer((_, response) =>
      answerJson(response, 200, { ...instanceAnswer, id: '../a?b' }),
    );
    const client = clientOf(server.baseUrl);
    await client.getInstance('../a?b', 'eu frankfurt');
    expect(server.received[0]?.url).toBe('/v1/instances/..%2Fa%3Fb?region=eu%20frankfurt');
    for (const id of ['..', 'i\ud800'])
      expect(await problemOf(client.deleteInstance(id, 'eu'))).toMatchObject({
        problem: 'invalid',
        mayHaveHappened: false,
      });
    expect(server.received).toHaveLength(1);
  });

  it('reuse a connection', async () => {
    const ports = new Set<number | undefined>();
    await using server = await startAnsweringServer((_, response) => {
      ports.add(response.socket?.remotePort);
      answerJson(response, 200, instanceAnswer);
    });
    const client = clientOf(server.baseUrl);
    for (let call = 0; call < 20; call++) await read(client);
    expect(ports.size).toBeLessThan(5);
  });
});

describe('connections', () => {
  it('are replaced after an hour, even if all of them are open', async () => {
    const ports = new Set<number | undefined>();
    await using server = await startAnsweringServer((_, response) => {
      ports.add(response.req.socket.remotePort);
      answerJson(response, 200, instanceAnswer);
    });
    const clock = new VirtualClock();
    const client = clientOf(server.baseUrl, { clock, connections: 2 });
    await Promise.all([read(client), read(client)]);
    await read(client);
    expect(ports.size).toBe(2);
    await clock.advance(3_600_000);
    await read(client);
    expect(ports.size).toBe(3);
  });
});

describe('answers [client-answers]', () => {
  it('lose unknown fields', async () => {
    await using server = await startAnsweringServer((_, response) =>
      answerJson(response, 200, { ...instanceAnswer, secret_field: 1 }),
    );
    expect(await read(clientOf(server.baseUrl))).toEqual(instanceAnswer);
  });

  it('read null in an optional field as absent [client-nulls]', async () => {
    const { public_ip: _, price_per_hour: __, ...instance } = instanceAnswer;
    const volume = { id: 'v-1', name: 'data', size_gb: 1, region: 'eu', status: 'AVAILABLE' };
    const location = { id: 'eu', name: 'EU' };
    const nulls = (fields: string) => Object.fromEntries(fields.split(' ').map((name) => [name, null]));
    const shown = {
      ...instance,
      ...nulls('name public_ip ssh_port port_forwards price_per_hour error image'),
    };
    const answers: [string, object][] = [
      [
        '/configurations',
        { configurations: [{ ...configurationAnswer, ...nulls('description os_options') }] },
      ],
      ['/locations', { locations: [{ ...location, ...nulls('types country_code') }] }],
      ['/volumes/', { ...volume, ...nulls('type attached_instance_ids price_per_hour created_at') }],
      ['/x/', { restarting: false, since: null }],
      ['GET /v1/instances?', { instances: [shown] }],
      ['/instances', shown],
    ];
    const client = clientOf('http://provider.internal/v1', {
      fetch: (url, { method }) => {
        const asked = `${method} ${new URL(url).pathname}?`;
        return Response.json(answers.find(([part]) => asked.includes(part))?.[1]);
      },
    });
    expect(await client.listConfigurations()).toEqual([configurationAnswer]);
    expect(await client.listVolumeLocations()).toEqual([location]);
    expect(await client.getVolume('v-1')).toEqual(volume);
    expect(await client.restartStatus('i-1', 'eu')).toEqual({ restarting: false });
    expect([await write(client), ...(await client.listInstances())]).toEqual([instance, instance]);
    expect(await read(client)).toEqual(instance);
  });

  it.each<[string, object, object, ResponseInit?]>([
    [
      'fields that cannot be read',
      { id: 'i-7', status: 'NEW', created_at: 0, region: 'eu' },
      { id: 'i-7', region: 'eu' },
    ],
    ['an id that cannot be used', { id: 'i\0', name: 7 }, { id: 'i\0' }],
    ['an id that is no text', { id: 7 }, { id: '' }],
    [
      'another status and type',
      { id: 'i-7' },
      { id: 'i-7' },
      { status: 202, headers: { 'content-type': 'text/plain' } },
    ],
    ['an error', { id: 'i-7', error: { code: 'slow', message: '' } }, { id: 'i-7' }],
  ])(
    'to a create keep its id with %s, for the caller to judge [create-id-kept]',
    async (_, body, read, init = {}) => {
      const client = clientOf('http://provider.internal/v1', { fetch: () => Response.json(body, init) });
      expect(await write(client)).toEqual(read);
      expect(await client.createVolume({ name: 'data', size_gb: 1, region: 'eu' }, 'vol-1')).toEqual(read);
    },
  );

  it.each([
    ['an unknown status', { ...instanceAnswer, status: 'REBOOTING' }, 'status: '],
    ['a price as a text', { ...instanceAnswer, price_per_hour: '2.39' }, 'price_per_hour: '],
    ['a negative price', { ...instanceAnswer, price_per_hour: -1 }, 'price_per_hour: '],
    ['an error within a success', { ...instanceAnswer, error: { code: 'x', message: 'y' } }, 'an error'],
    ['another instance', { ...instanceAnswer, id: 'i-2' }, 'the requested id'],
    ['NUL in a text', { ...instanceAnswer, ssh_username: 'u\0' }, 'ssh_username: expected text without NUL'],
    ['null', null, 'object'],
  ])('are invalid with %s', async (_, body, message) => {
    await using server = await startAnsweringServer((_, response) => answerJson(response, 200, body));
    const problem = await problemOf(read(clientOf(server.baseUrl)));
    expect(problem).toMatchObject({ problem: 'invalid', status: 200, mayHaveHappened: false });
    expect(problem.message).toContain(message);
  });

  it.each([
    ['HTML', { 'Content-Type': 'text/html' }, '<html>'],
    ['JSON under another type', { 'Content-Type': 'text/plain' }, '{"instances":[]}'],
    ['half of a JSON', { 'Content-Type': 'application/json' }, JSON.stringify(instanceAnswer).slice(0, 40)],
    ['bytes that are no text', { 'Content-Type': 'application/json' }, Buffer.from([0x22, 0xff, 0x22])],
    ['nothing', { 'Content-Type': 'application/json' }, ''],
    [
      'JSON that is nested without end',
      { 'Content-Type': 'application/json' },
      JSON.stringify(instanceAnswer).replace('{', `{"extras":${'['.repeat(20_000)}${']'.repeat(20_000)},`),
    ],
  ])('are invalid when they are %s, and a write may have happened', async (_, headers, body) => {
    await using server = await startAnsweringServer((_, response) =>
      response.writeHead(201, headers).end(body),
    );
    const client = clientOf(server.baseUrl);
    expect(await problemOf(read(client))).toMatchObject({ problem: 'invalid', mayHaveHappened: false });
    expect(await problemOf(write(client))).toMatchObject({ problem: 'invalid', mayHaveHappened: true });
  });

  it.each([
    [400, 'refused', false],
    [401, 'unauthorized', false],
    [403, 'unauthorized', false],
    [404, 'not_found', false],
    [409, 'conflict', false],
    [422, 'refused', false],
    [429, 'limited', false],
    [500, 'failed', true],
    [503, 'failed', true],
  ] as const)('with %i are %s', async (status, problem, mayHaveHappened) => {
    await using server = await startAnsweringServer((_, response) =>
      answerJson(response, status, { error: { code: 'some_code', message: 'Because.' } }),
    );
    const client = clientOf(server.baseUrl);
    const expected = { problem, status, code: 'some_code' };
    expect(await problemOf(read(client))).toMatchObject({ ...expected, mayHaveHappened: false });
    expect(await problemOf(write(client))).toMatchObject({
      ...expected,
      mayHaveHappened,
      message: `POST /instances: ${status}, Because.`,
    });
  });

  it.each([
    [{ reason: 'platform_silent', region: 'r' }, 'platform_silent'],
    [{ reason: 7 }, null],
    [['reason'], null],
    [{ reason: 'a\nb' }, null],
    [undefined, null],
  ])('with details %j give the reason %j', async (details, reason) => {
    const error = { code: 'capacity_unavailable', message: 'No.', details };
    await using server = await startAnsweringServer((_, response) => answerJson(response, 409, { error }));
    const problem = await problemOf(write(clientOf(server.baseUrl)));
    expect(problem).toMatchObject({ problem: 'conflict', code: 'capacity_unavailable', reason });
  });

  it('with a 404 of another server say nothing about an instance', async () => {
    await using server = await startAnsweringServer((_, response) =>
      response.writeHead(404, { 'Content-Type': 'text/html' }).end('<h1>no such host</h1>'),
    );
    const client = clientOf(server.baseUrl);
    expect(await problemOf(read(client))).toMatchObject({ problem: 'invalid', status: 404 });
    expect(await problemOf(client.deleteInstance('i-1', 'eu'))).toMatchObject({ problem: 'invalid' });
  });

  it('with a 404 and an Error are the success of a delete', async () => {
    await using server = await startAnsweringServer((_, response) =>
      answerJson(response, 404, { error: { code: 'not_found', message: 'gone' } }),
    );
    const client = clientOf(server.baseUrl);
    expect(await client.deleteInstance('i-1', 'eu')).toBeNull();
    expect(await client.deleteVolume('v-1')).toBe(false);
  });

  it('are reported on one line, without control characters or the key, and truncated', async () => {
    const text = `No\r\n\u001b[31mFAKE LOG\u2028for ${KEY} ${'x'.repeat(500)}`;
    await using server = await startAnsweringServer((_, response) =>
      answerJson(response, 400, { error: { code: 'a\nb', message: text } }),
    );
    const { message, code } = await problemOf(read(clientOf(server.baseUrl)));
    expect(message).toMatch(/^GET \/instances\/i-1: 400, No \[31mFAKE LOG for \[credential\] x+…$/);
    expect(message.length).toBeLessThan(240);
    expect(code).toBeNull();
  });
});

describe('lists', () => {
  it('of offers skip an unreadable element and report it', async () => {
    const broken = { ...configurationAnswer, id: 'broken', price_per_hour: -3 };
    const badText = { ...configurationAnswer, regions: ['eu', 'eu\0'] };
    const half = { ...configurationAnswer, extras: { a: [{ '\udc00': 1 }] } };
    const problems: unknown[] = [];
    await using server = await startAnsweringServer((_, response) =>
      answerJson(response, 200, { configurations: [broken, configurationAnswer, 7, badText, half] }),
    );
    const client = clientOf(server.baseUrl, { onProblem: (problem) => problems.push(problem) });
    expect(await client.listConfigurations()).toEqual([configurationAnswer]);
    expect(problems).toMatchObject([
      {
        call: 'GET /configurations',
        message: expect.stringContaining('configurations[0]: price_per_hour: '),
      },
      { call: 'GET /configurations', message: expect.stringContaining('configurations[2]: ') },
      { message: 'configurations[3]: regions[1]: expected text without NUL or half a surrogate pair' },
      { message: 'configurations[4]: extras.a[0]: expected text without NUL or half a surrogate pair' },
    ]);
    expect((await client.listAvailability('eu-frankfurt')).map(({ id }) => id)).toEqual(['h100-1x']);
    expect(server.received[1]?.url).toBe('/v1/availability?region=eu-frankfurt');
  });

  it('of instances lose a field that cannot be read, never an id: absence is concluded from them', async () => {
    const { status: _, ...rest } = instanceAnswer;
    await using server = await startAnsweringServer((_, response) =>
      answerJson(response, 200, { instances: [instanceAnswer, { ...rest, status: 'LOST' }, null] }),
    );
    expect(await clientOf(server.baseUrl).listInstances()).toEqual([instanceAnswer, rest]);
  });

  it.each([[{ configurations: {} }], [[]], [{ configurations: [], error: 'overloaded' }]])(
    'are invalid as %j',
    async (body) => {
      await using server = await startAnsweringServer((_, response) => answerJson(response, 200, body));
      expect(await problemOf(clientOf(server.baseUrl).listConfigurations())).toMatchObject({
        problem: 'invalid',
      });
    },
  );

  it('may name regions freely and omit GPUs', async () => {
    const odd = {
      ...configurationAnswer,
      regions: ['US_East 1'],
      gpu_count: 0,
      gpu_type: '',
      gpu_memory_gb: 0,
    };
    await using server = await startAnsweringServer((_, response) =>
      answerJson(response, 200, { configurations: [odd] }),
    );
    expect(await clientOf(server.baseUrl).listConfigurations()).toEqual([odd]);
  });
});

it('refuses a key that does not fit into a header', () => {
  expect(() => clientOf('https://gpu.example/v1', { credential: { apiKey: 'a\nb' } })).toThrow(
    'visible ASCII',
  );
});

it('speaks to an orchestrator in the same process', async () => {
  const client = clientOf('http://provider.internal/v1', {
    fetch: (url, init) => Response.json({ ...instanceAnswer, name: `${init.method} ${url}` }),
  });
  expect((await read(client)).name).toBe('GET http://provider.internal/v1/instances/i-1?region=eu-frankfurt');
});

it('ends a call in the same process in time, even if its signal is ignored', async () => {
  const client = clientOf('http://provider.internal/v1', {
    timeoutMs: 20,
    fetch: () => new Promise<Response>(() => undefined),
  });
  expect(await problemOf(write(client))).toMatchObject({ problem: 'timeout', mayHaveHappened: true });
});

describe('a poll', () => {
  const poll = (client: OrchestratorClient, mark: string | null) =>
    client.pollInstance('i-1', 'eu-frankfurt', mark);
  const first = async (client: OrchestratorClient) => {
    const answer = await poll(client, null);
    if (answer === 'unchanged') throw new Error('there was no answer before');
    return answer;
  };

  it('sends the ETag of the last answer, and reads 304 as the same answer', async () => {
    await using server = await startAnsweringServer(({ headers }, response) => {
      if (headers['if-none-match'] === '"v1"') return response.writeHead(304).end();
      response.setHeader('ETag', '"v1"');
      return answerJson(response, 200, instanceAnswer);
    });
    const client = clientOf(server.baseUrl);
    const { instance, mark } = await first(client);
    expect(instance.id).toBe('i-1');
    expect(await poll(client, mark)).toBe('unchanged');
    expect(server.received.map(({ headers }) => headers['if-none-match'])).toEqual([undefined, '"v1"']);
  });

  it('does not parse identical bytes again if the provider ignores conditions', async () => {
    await using server = await startAnsweringServer((_, response) =>
      answerJson(response, 200, instanceAnswer),
    );
    const client = clientOf(server.baseUrl);
    const { mark } = await first(client);
    const parse = vi.spyOn(JSON, 'parse');
    onTestFinished(() => parse.mockRestore());
    expect(await poll(client, mark)).toBe('unchanged');
    expect(parse).not.toHaveBeenCalled();
  });

  it('parses different bytes, even with the same ETag', async () => {
    await using server = await startAnsweringServer((_, response, count) => {
      response.setHeader('ETag', '"constant"');
      answerJson(response, 200, { ...instanceAnswer, status: count === 1 ? 'ONLINE' : 'STOPPED' });
    });
    const client = clientOf(server.baseUrl);
    const { mark } = await first(client);
    expect(await poll(client, mark)).toMatchObject({ instance: { status: 'STOPPED' } });
  });

  it.each([
    ['has no entity tag', undefined],
    ['has one that is none', 'v1'],
    ['has one that is too long', `"${'x'.repeat(300)}"`],
  ])('does not accept 304 where the last answer %s', async (_, etag) => {
    await using server = await startAnsweringServer((_request, response, count) => {
      if (count > 1) return response.writeHead(304).end();
      if (etag !== undefined) response.setHeader('ETag', etag);
      return answerJson(response, 200, instanceAnswer);
    });
    const client = clientOf(server.baseUrl);
    const { mark } = await first(client);
    expect(await problemOf(poll(client, mark))).toMatchObject({ problem: 'invalid', status: 304 });
    expect(server.received[1]?.headers).not.toHaveProperty('if-none-match');
  });
});
