import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { instanceRequest, volumeRequest } from '../../testing/requests.ts';
import { newPublicKey } from '../../testing/ssh-keys.ts';
import { PATIENCE_MS } from '../../testing/until.ts';
import { type Reply, startTestOrchestrator, type TestOrchestrator } from '../support/orchestrator.ts';
import { type Residue, residueOf } from '../support/processes/residue.ts';

interface ErrorReply {
  error: { code: string; message: string; details: { issues: { path: string; message: string }[] } };
}

const fixtures = new URL('../../fixtures/', import.meta.url);
const ED25519 = newPublicKey();
const PRIVATE_KEY_DATA = 'b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMw';

let orchestrator: TestOrchestrator;
let strangersVolume = '';
let strangersInstance = '';
let clean: Residue;

beforeAll(async () => {
  orchestrator = await startTestOrchestrator();
  const key = await orchestrator.addAccount('stranger');
  const volume = await orchestrator.request('POST', '/volumes', { body: volumeRequest(), key });
  const instance = await orchestrator.request('POST', '/instances', { body: instanceRequest(), key });
  strangersVolume = String(volume.body['id']);
  strangersInstance = String(instance.body['id']);
  await settled('/volumes/', strangersVolume, key, 'AVAILABLE');
  await settled('/instances/', strangersInstance, key, 'ONLINE');
  clean = await residueOf(orchestrator);
});
afterAll(async () => {
  await orchestrator[Symbol.asyncDispose]();
});

async function settled(path: string, id: string, key: string, status: string): Promise<void> {
  await vi.waitFor(
    async () => {
      const { body } = await orchestrator.request('GET', `${path}${id}`, { key });
      expect(body['status']).toBe(status);
    },
    { timeout: PATIENCE_MS, interval: 10 },
  );
}

/** The reply is a 400 in the envelope, whose issues say where and what; and nothing is left behind. */
async function expectRefused(reply: Reply<ErrorReply>, ...paths: string[]): Promise<ErrorReply['error']> {
  expect({ status: reply.status, text: reply.text }).toMatchObject({ status: 400 });
  const { error } = reply.body;
  expect(error.details.issues.map((issue) => issue.path).sort()).toEqual([...paths].sort());
  for (const { message } of error.details.issues) expect(message.length).toBeGreaterThan(5);
  for (const { path, message } of error.details.issues) {
    expect(error.message).toContain(path);
    if (error.code === 'invalid_request') expect(error.message).toContain(message);
  }
  expect(reply.headers.get('x-request-id')).toBeTruthy();
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

describe('ssh_keys', () => {
  const invalid = new URL('ssh-keys/invalid/', fixtures);

  it.each(readdirSync(invalid))('refuses %s and does not repeat it', async (file) => {
    const text = readFileSync(new URL(file, invalid), 'utf8');
    const reply = await create({ ssh_keys: [ED25519, text] });
    const { message } = await expectRefused(reply, 'ssh_keys[1]');
    const words = text.split(/\s+/).filter((word) => word.length > 30);
    for (const word of words) expect(reply.text).not.toContain(word.slice(0, 30));
    if (file.startsWith('private-key')) expect(message).toContain('private key');
  });

  it.each([
    ['missing', undefined, 'ssh_keys'],
    ['null', null, 'ssh_keys'],
    ['empty', [], 'ssh_keys'],
    ['a string', ED25519, 'ssh_keys'],
    ['an object', { 0: ED25519 }, 'ssh_keys'],
    ['a list with null', [null], 'ssh_keys[0]'],
    ['a list of lists', [[ED25519]], 'ssh_keys[0]'],
    ['too many', Array.from({ length: 33 }, () => ED25519), 'ssh_keys'],
    ['an empty string', [''], 'ssh_keys[0]'],
    ['several keys in one string', [`${ED25519}\n${newPublicKey()}`], 'ssh_keys[0]'],
    ['a key with CR LF inside', [ED25519.replace(' ', '\r\n')], 'ssh_keys[0]'],
    ['a key with a second line of options', [`${ED25519}\r\ncommand="sh" ${ED25519}`], 'ssh_keys[0]'],
    ['options before the key', [`command="/bin/sh" ${ED25519}`], 'ssh_keys[0]'],
    ['another type than the data has', [ED25519.replace('ssh-ed25519', 'ssh-rsa')], 'ssh_keys[0]'],
    [
      'a private key',
      [`-----BEGIN OPENSSH PRIVATE KEY-----\n${PRIVATE_KEY_DATA}\n-----END OPENSSH PRIVATE KEY-----\n`],
      'ssh_keys[0]',
    ],
  ])('refuses: %s', async (_name, keys, path) => {
    const reply = await create({ ssh_keys: keys });
    await expectRefused(reply, path);
    expect(reply.text).not.toContain(PRIVATE_KEY_DATA);
  });
});

describe('the fields of a create [create-fields]', () => {
  it.each<[string, Record<string, unknown>, string[]]>([
    ['an unknown offer', { configuration_id: 'nope' }, ['configuration_id']],
    ['an offer that is no string', { configuration_id: 7 }, ['configuration_id']],
    ['an unknown region', { region: 'mars-olympus' }, ['region']],
    [
      'a region where the offer is not sold',
      { configuration_id: 'h100-sxm-1x', region: 'eu-helsinki' },
      ['region'],
    ],
    ['a datacenter code for a region', { region: 'hal-fra1-b' }, ['region']],
    ['a region with a quote', { region: "eu-frankfurt' OR 1=1 --" }, ['region']],
    ['an image that is not offered', { operating_system_image: 'templeos' }, ['operating_system_image']],
    ['an image that is a path', { operating_system_image: '../../etc/passwd' }, ['operating_system_image']],
    ['a disk of 0 GB', { root_disk_size_gb: 0 }, ['root_disk_size_gb']],
    ['a disk of -1 GB', { root_disk_size_gb: -1 }, ['root_disk_size_gb']],
    ['a disk below the least', { root_disk_size_gb: 19 }, ['root_disk_size_gb']],
    ['a disk above the most', { root_disk_size_gb: 1001 }, ['root_disk_size_gb']],
    ['a disk in words', { root_disk_size_gb: '80' }, ['root_disk_size_gb']],
    ['a disk that is null', { root_disk_size_gb: null }, ['root_disk_size_gb']],
    [
      'another size for a fixed disk',
      { configuration_id: 'h100-sxm-8x', region: 'us-ashburn', root_disk_size_gb: 10 },
      ['root_disk_size_gb'],
    ],
    ['a name that is a number', { name: 5 }, ['name']],
    ['a name that is null', { name: null }, ['name']],
    ['an empty name', { name: '' }, ['name']],
    ['a name with NUL', { name: 'a\0b' }, ['name']],
    ['a name with a line feed', { name: 'a\nb' }, ['name']],
    ['a name that turns its direction', { name: 'safe\u202egnp.exe\u2066' }, ['name']],
    ['a name with what is not seen', { name: 'a\u200bb' }, ['name']],
    ['a name with half a surrogate pair', { name: 'a\ud800' }, ['name']],
    ['a name of 300 characters', { name: 'a'.repeat(300) }, ['name']],
    ['an unknown volume', { volume_ids: ['vol-0'] }, ['volume_ids[0]']],
    ['volumes that are a string', { volume_ids: 'vol-0' }, ['volume_ids']],
    ['a volume id that is a number', { volume_ids: [7] }, ['volume_ids[0]']],
    ['65 volumes', { volume_ids: Array.from({ length: 65 }, () => 'v') }, ['volume_ids']],
    ['cloud_init that is a string', { cloud_init: '#cloud-config' }, ['cloud_init']],
  ])('refuse %s', async (_name, overrides, paths) => {
    const error = await expectRefused(await create(overrides), ...paths);
    expect(error.code).toBe('invalid_request');
    expect(error.message).toMatch(/expected/i);
  });

  it.each(['1e999', '-1e999', '1e308', '123456789012345678901234567890', '-0', '0.0000001'])(
    'refuse a disk of %s GB',
    async (number) => {
      const body = JSON.stringify(instanceRequest({ root_disk_size_gb: 1 })).replace(
        '"root_disk_size_gb":1',
        `"root_disk_size_gb":${number}`,
      );
      await expectRefused(await send(body), 'root_disk_size_gb');
    },
  );

  it('refuse the volume of another account in the words for an unknown one', async () => {
    const foreign = await expectRefused(await create({ volume_ids: [strangersVolume] }), 'volume_ids[0]');
    const unknown = await expectRefused(
      await create({ volume_ids: [`vol-${'0'.repeat(32)}`] }),
      'volume_ids[0]',
    );
    expect(foreign).toEqual(unknown);
  });

  it('refuse cloud_init for an offer without it [cloud-init-unsupported]', async () => {
    const reply = await create({
      configuration_id: 'a40-1x',
      region: 'us-ashburn',
      cloud_init: { runcmd: ['true'] },
    });
    const error = await expectRefused(reply, 'cloud_init');
    expect(error.code).toBe('cloud_init_unsupported');
  });

  it('tell all that is wrong at once, whatever finds it [create-all-findings]', async () => {
    const everything = {
      region: 'mars-olympus',
      ssh_keys: [ED25519, 'garbage', `restrict ${ED25519}`],
      name: 5,
      operating_system_image: 'templeos',
      root_disk_size_gb: 1,
      cloud_init: { runcmd: 'sh', write_files: [{ path: 'etc/motd', content: 7, permissions: '999' }] },
      volume_ids: [true],
    };
    const paths = ['region', 'ssh_keys[1]', 'ssh_keys[2]', 'operating_system_image', 'root_disk_size_gb'];
    await expectRefused(
      await create(everything),
      ...paths,
      ...['name', 'volume_ids[0]', 'cloud_init.runcmd'],
      ...['path', 'content', 'permissions'].map((field) => `cloud_init.write_files[0].${field}`),
    );
    const { name: _, cloud_init: __, ...onlyForTheCatalog } = everything;
    await expectRefused(
      await create({ ...onlyForTheCatalog, volume_ids: ['nope', strangersVolume] }),
      ...paths,
      ...['volume_ids[0]', 'volume_ids[1]'],
    );
    await expectRefused(
      await create({ configuration_id: 'x', ssh_keys: [''] }),
      'configuration_id',
      'ssh_keys[0]',
    );
  });
});

describe('cloud_init', () => {
  const invalid = new URL('cloud-init/invalid/', fixtures);

  it.each(readdirSync(invalid))('refuses %s', async (file) => {
    const reply = await create({ cloud_init: JSON.parse(readFileSync(new URL(file, invalid), 'utf8')) });
    expect(reply.status).toBe(400);
    const { issues } = reply.body.error.details;
    expect(issues.length).toBeGreaterThan(0);
    for (const { path } of issues) expect(path).toMatch(/^cloud_init(\.|$)/);
    expect(await residueOf(orchestrator)).toEqual(clean);
  });
});

describe('the fields of a volume', () => {
  it.each<[string, Record<string, unknown>, string[]]>([
    ['no name', { name: undefined }, ['name']],
    ['a name that turns its direction', { name: 'safe\u202egnp.exe\u2066' }, ['name']],
    ['a name with NUL', { name: 'a\0b' }, ['name']],
    ['0 GB', { size_gb: 0 }, ['size_gb']],
    ['too few GB for the type', { size_gb: 1 }, ['size_gb']],
    ['-5 GB', { size_gb: -5 }, ['size_gb']],
    ['a size in words', { size_gb: '100' }, ['size_gb']],
    ['a region without volumes', { region: 'ap-singapore' }, ['region']],
    ['an unknown region', { region: 'mars' }, ['region']],
    ['an unknown type', { type: 'floppy' }, ['type']],
    ['an unknown instance', { instance_ids: ['inst-0'] }, ['instance_ids[0]']],
    ['instances that are a string', { instance_ids: 'inst-0' }, ['instance_ids']],
    [
      'an unknown type and an unknown instance',
      { type: 'floppy', instance_ids: ['x'] },
      ['type', 'instance_ids[0]'],
    ],
  ])('refuse %s', async (_name, overrides, paths) => {
    await expectRefused(
      await orchestrator.request('POST', '/volumes', { body: volumeRequest(overrides) }),
      ...paths,
    );
  });

  it('refuse the instance of another account in the words for an unknown one', async () => {
    const errors = [];
    for (const id of [strangersInstance, `inst-${'0'.repeat(32)}`])
      errors.push(
        await expectRefused(
          await orchestrator.request('POST', '/volumes', { body: volumeRequest({ instance_ids: [id] }) }),
          'instance_ids[0]',
        ),
      );
    expect(errors[0]).toEqual(errors[1]);
  });

  it.each([
    ['attach', { instance_ids: [] }, 'instance_ids'],
    ['attach', {}, 'instance_ids'],
    ['attach', { instance_ids: [7] }, 'instance_ids[0]'],
    ['detach', { instance_ids: [] }, 'instance_ids'],
    ['detach', { instance_ids: null }, 'instance_ids'],
  ])('refuse %s with %j', async (action, body, path) => {
    await expectRefused(
      await orchestrator.request('POST', `/volumes/${strangersVolume}/${action}`, { body }),
      path,
    );
  });
});

describe('ids in a path', () => {
  const odd = [
    '..%2F..%2Fetc%2Fpasswd',
    '%2e%2e%2fvolumes',
    "'",
    '%22',
    "' OR '1'='1",
    '%00',
    'inst-%00',
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
    const { status, body, headers } = await orchestrator.request<ErrorReply>(method, path);
    expect([status, body.error.code]).toEqual([405, 'method_not_allowed']);
    expect(new Set(headers.get('allow')?.split(', '))).toEqual(new Set(allow.split(', ')));
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
  expect(await residueOf(orchestrator)).toEqual(clean);
  const { status, body } = await orchestrator.request('POST', '/instances', { body: instanceRequest() });
  expect(status).toBe(201);
  await orchestrator.waitFor(String(body['id']), 'ONLINE');
});
