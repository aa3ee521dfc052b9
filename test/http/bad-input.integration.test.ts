import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Reply, TestOrchestrator } from '../support/orchestrator.ts';
import { type Residue, residueOf } from '../support/processes/residue.ts';
import { instanceRequest, volumeRequest } from '../support/rows/requests.ts';
import { type ErrorReply, expectIssues, expectUnharmed, startWithStranger } from './bad-input.fixture.ts';

let orchestrator: TestOrchestrator;
let strangersVolume = '';
let strangersInstance = '';
let clean: Residue;

beforeAll(async () => {
  ({ orchestrator, strangersVolume, strangersInstance, clean } = await startWithStranger());
});
afterAll(async () => {
  await orchestrator[Symbol.asyncDispose]();
});

/** The reply names the fields, and nothing is left behind. */
async function expectRefused(reply: Reply<ErrorReply>, ...paths: string[]): Promise<ErrorReply['error']> {
  const error = expectIssues(reply, ...paths);
  expect(await residueOf(orchestrator)).toEqual(clean);
  return error;
}

const create = (overrides: Record<string, unknown>): Promise<Reply<ErrorReply>> =>
  orchestrator.request('POST', '/instances', { body: instanceRequest(overrides) });
const send = (body: string, headers: Record<string, string> = {}, path = '/instances') =>
  orchestrator.request<ErrorReply>('POST', path, { body, headers });

const nested = (depth: number): string => `${'['.repeat(depth)}${']'.repeat(depth)}`;

describe('a body that is no JSON object [body-no-object]', () => {
  it.each([
    ['cut off', '{"configuration_id": "cpu-4x16"'],
    ['with a trailing comma', '{"configuration_id": "cpu-4x16",}'],
    ['with single quotes', "{'configuration_id': 'cpu-4x16'}"],
    ['with NaN', '{"root_disk_size_gb": NaN}'],
    ['with Infinity', '{"root_disk_size_gb": Infinity}'],
    ['with a comment', '{} // nothing'],
    ['two objects', '{}{}'],
    ['with a NUL after it', '{}\0'],
    ['a byte order mark and nothing', '\ufeff'],
    ['only spaces', '   '],
    ['an array', '[]'],
    ['null', 'null'],
    ['a string', '"cpu-4x16"'],
    ['a number', '7'],
    ['true', 'true'],
    ['20,000 arrays in each other', nested(20_000)],
    ['20,000 arrays that are never closed', '['.repeat(20_000)],
    ['20,000 objects in each other, cut off', '{"a":'.repeat(20_000)],
  ])('is refused: %s', async (_name, body) => {
    await expectRefused(await send(body), '');
    await expectRefused(await send(body, {}, '/volumes'), '');
    await expectRefused(await send(body, {}, `/volumes/${strangersVolume}/detach`), '');
    await expectRefused(await send(body, {}, `/instances/${strangersInstance}/stop`), '');
  });

  it('is refused: bytes that are not UTF-8', async () => {
    const response = await orchestrator.fetch('/v1/instances', {
      method: 'POST',
      headers: { Authorization: `Bearer ${orchestrator.key}`, 'Content-Type': 'application/json' },
      body: Buffer.from([0x7b, 0xff, 0xfe, 0x7d]),
    });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain('UTF-8');
  });

  it('is refused without a body: every required field is named', async () => {
    for (const body of ['', '{}'])
      await expectRefused(await send(body), 'configuration_id', 'region', 'ssh_keys');
    await expectRefused(await send('', {}, '/volumes'), 'name', 'size_gb', 'region');
  });
});

describe('a content type that is not JSON', () => {
  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/xml',
    'application/jsonp',
    'text/json',
    '',
  ])('is refused: %j', async (type) => {
    const body = JSON.stringify(instanceRequest());
    const error = await expectRefused(await send(body, { 'Content-Type': type }), '');
    expect(error.message).toContain('application/json');
  });

  it.each(['text/plain', 'multipart/form-data; boundary=x', 'application/xml'])(
    'is no matter without a body, where none is needed: %s',
    async (type) => {
      const headers = { 'Content-Type': type };
      const { status } = await send('', headers, `/volumes/${strangersVolume}/detach`);
      expect(status).toBe(404);
      await expectRefused(await send('', headers), 'configuration_id', 'region', 'ssh_keys');
    },
  );

  it.each(['Application/JSON', 'application/json ; charset=utf-8', 'application/merge-patch+json'])(
    'is refused only if it is not JSON: %s is, and what it says is heeded',
    async (type) => {
      const headers = { 'Content-Type': type };
      await expectRefused(await send('{"name": 5}', headers, '/volumes'), 'name', 'region', 'size_gb');
      // Were the body not read, this would detach from all instances.
      await expectRefused(
        await send('{"instance_ids": 7}', headers, `/volumes/${strangersVolume}/detach`),
        'instance_ids',
      );
    },
  );

  it('is refused with a content coding, which is not undone', async () => {
    const error = await expectRefused(await send('{"a":1}', { 'Content-Encoding': 'gzip' }), '');
    expect(error.message).toContain('Content-Encoding');
  });
});

describe('keys of a JSON object [body-hostile-keys]', () => {
  const valid = JSON.stringify(instanceRequest());

  it.each([
    ['__proto__', `{"__proto__": ${valid}}`],
    ['constructor', `{"constructor": {"prototype": ${valid}}}`],
    ['prototype', `{"prototype": ${valid}}`],
  ])('are no way to hand in fields through %s', async (_name, body) => {
    await expectRefused(await send(body), 'configuration_id', 'region', 'ssh_keys');
    expect(Object.hasOwn(Object.prototype, 'configuration_id')).toBe(false);
  });

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])(
    'name no offer, region, image or volume type: %s',
    async (name) => {
      await expectRefused(await create({ configuration_id: name }), 'configuration_id');
      await expectRefused(
        await create({ region: name, operating_system_image: name }),
        'region',
        'operating_system_image',
      );
      await expectRefused(
        await orchestrator.request('POST', '/volumes', { body: volumeRequest({ type: name }) }),
        'type',
      );
      await expectRefused(
        await orchestrator.request('POST', '/volumes', { body: volumeRequest({ region: name }) }),
        'region',
      );
    },
  );

  it('count once: of two the last, as JSON.parse has it', async () => {
    await expectRefused(await send(valid.replace('{', '{"name": "fine", "name": 5,')), 'name');
    await expectRefused(
      await send(`{"region": 5, ${valid.slice(1, -1)}, "configuration_id": "x"}`),
      'configuration_id',
    );
  });
});

describe('a NUL or half a surrogate pair [text-not-plain]', () => {
  it('is refused wherever a request may have a text', async () => {
    for (const text of ['a\0b', 'a\ud800b']) {
      await expectRefused(
        await create({ region: text, volume_ids: ['x', text], cloud_init: { packages: [] } }),
        'region',
        'volume_ids[1]',
      );
      const token = { username: text, password: text };
      await expectRefused(await send(JSON.stringify(token), {}, '/auth/token'), 'username', 'password');
    }
    for (const [method, path, field] of [
      ['GET', '/instances/a%00', 'instanceId'],
      ['DELETE', '/instances/a%00', 'instanceId'],
      ['POST', '/volumes/%00/detach', 'volumeId'],
      ['GET', '/instances?region=%00', 'region'],
      ['GET', '/availability?region=a%00', 'region'],
    ] as const)
      await expectRefused(await orchestrator.request(method, path), field);
  });

  it('is ignored in an unknown field, like the field', async () => {
    await expectRefused(await create({ region: 5, 'a\0': 'a\ud800b' }), 'region');
  });
});

describe('ids in a path', () => {
  const odd = [
    '..%2F..%2Fetc%2Fpasswd',
    '%2e%2e%2fvolumes',
    "'",
    '%22',
    "' OR '1'='1",
    '%zz',
    '%',
    '%ff%fe',
    '%F0%9F%98%80',
    'a'.repeat(3_000),
    '%25',
    '-1',
    'null',
    'undefined',
    '*',
    '%0d%0aX-Injected:%20yes',
  ];
  it.each(odd)('are 404 if nothing has them: %j', async (id) => {
    for (const [method, path] of [
      ['GET', `/instances/${id}`],
      ['DELETE', `/instances/${id}`],
      ['POST', `/instances/${id}/start`],
      ['POST', `/instances/${id}/stop`],
      ['GET', `/volumes/${id}`],
      ['DELETE', `/volumes/${id}`],
      ['POST', `/volumes/${id}/detach`],
    ] as const) {
      const reply = await orchestrator.request<ErrorReply>(method, path);
      expect([reply.status, reply.body.error.code]).toEqual([404, 'not_found']);
      expect(reply.headers.get('x-injected')).toBeNull();
    }
    const attach = await orchestrator.request('POST', `/volumes/${id}/attach`, {
      body: { instance_ids: ['x'] },
    });
    expect(attach.status).toBe(404);
  });
});

describe('routes and methods that are not there', () => {
  it.each([
    '',
    '/',
    '/nothing',
    '/instances/',
    '/instances/a/b',
    '/instances/a/restart',
    '/Instances',
    '/v1/instances',
  ])('are 404 with the envelope: %s', async (path) => {
    const { status, body } = await orchestrator.request<ErrorReply>('GET', path);
    expect([status, body.error.code]).toEqual([404, 'not_found']);
  });

  it.each([
    ['PUT', '/instances', 'GET, HEAD, POST'],
    ['PATCH', '/instances/x', 'GET, HEAD, DELETE'],
    ['GET', '/instances/x/stop', 'POST'],
    ['DELETE', '/configurations', 'GET, HEAD'],
    ['GET', '/auth/token', 'POST'],
    ['POST', '/volumes/locations', 'GET, HEAD, DELETE'],
    ['OPTIONS', '/instances', 'GET, HEAD, POST'],
  ])('are 405 with Allow where the path is: %s %s', async (method, path, allow) => {
    const options = method === 'PUT' ? { body: 'x', headers: { 'Content-Type': 'text/plain' } } : {};
    const { status, body, headers } = await orchestrator.request<ErrorReply>(method, path, options);
    expect([status, body.error.code]).toEqual([405, 'method_not_allowed']);
    expect(new Set(headers.get('allow')?.split(', '))).toEqual(new Set(allow.split(', ')));
  });

  it('are 404 where there is no such path, whatever the body is', async () => {
    const options = { body: 'x', headers: { 'Content-Type': 'text/plain' } };
    const { status, body } = await orchestrator.request<ErrorReply>('POST', '/nothing', options);
    expect([status, body.error.code]).toEqual([404, 'not_found']);
  });

  it.each([
    '/nothing',
    '/docs/constructor',
    '/docs/__proto__',
    '/docs/package.json',
    '/metrics/x',
    '/openapi.yaml',
  ])('are 404 with the envelope outside of /v1: %s', async (path) => {
    const response = await orchestrator.fetch(path);
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ error: { code: 'not_found' } });
  });

  it('HEAD says what GET would, without the body', async () => {
    for (const path of ['/configurations', '/instances', '/volumes/locations']) {
      const get = await orchestrator.request('GET', path);
      const head = await orchestrator.request('HEAD', path);
      expect([head.status, head.text]).toEqual([200, '']);
      expect(head.headers.get('etag')).toBe(get.headers.get('etag'));
      expect(head.headers.get('content-type')).toBe(get.headers.get('content-type'));
      expect(head.headers.get('cache-control')).toBe(get.headers.get('cache-control'));
    }
    expect((await orchestrator.request('HEAD', '/instances/nope')).status).toBe(404);
  });
});

it('leaves nothing behind, and the orchestrator as able as before [bad-input-leaves-nothing]', async () => {
  await expectUnharmed(orchestrator, clean);
});
