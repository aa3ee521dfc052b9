import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withFaults } from '../support/faulty-driver.ts';
import { until } from '../support/http/http-client.ts';
import { startServer, WireClient } from '../support/http/wire.ts';
import {
  type RequestOptions,
  startTestOrchestrator,
  type TestOrchestrator,
} from '../support/orchestrator.ts';
import { instanceRequest, volumeRequest } from '../support/rows/requests.ts';

interface Offer {
  regions: string[];
}

/** Null in an optional field of a create is read as absent. */
const nothing = {
  operating_system_image: null,
  root_disk_size_gb: null,
  volume_ids: null,
  cloud_init: { packages: null, write_files: [{ path: '/etc/motd', content: '', owner: null }] },
};

const RFC_3339_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

describe('what the replies of a whole life say', () => {
  let orchestrator: TestOrchestrator;
  const replies: { name: string; status: number; text: string; headers: Headers }[] = [];

  async function ask(method: string, path: string, options: RequestOptions = {}) {
    const reply = await orchestrator.request(method, path, options);
    replies.push({ name: `${method} ${path}`, ...reply });
    return reply;
  }

  async function waitFor(path: string, ...states: string[]): Promise<void> {
    await until(
      async () => {
        const { status, body } = await ask('GET', path);
        return states.includes(status === 404 ? 'GONE' : String(body['status']));
      },
      () => `${path} is not ${states}`,
    );
  }

  /** A platform that explains its failures with its own names, another machine's among them. */
  function talkative(driver: TestOrchestrator['simulator']): TestOrchestrator['simulator'] {
    const faulty = withFaults(driver, () => 'none');
    return {
      ...faulty,
      create: async (spec, cookie) => {
        if (!spec.hostname.startsWith('broken')) return faulty.create(spec, cookie);
        const detail = `no host in ${spec.datacenter} or ${spec.datacenter.toUpperCase()} for ${spec.ref}: berth-inst-0123456789abcdef0123456789abcdef is there`;
        return { outcome: 'failed', code: 'quota', sideEffect: 'none', detail };
      },
    };
  }

  beforeAll(async () => {
    orchestrator = await startTestOrchestrator({ wrapDriver: talkative });
    const { body } = await ask('GET', '/configurations');
    const { body: availability } = await ask('GET', '/availability');
    const { body: locations } = await ask('GET', '/volumes/locations');
    expect([body, availability, locations].map((list) => Object.values(list)[0]).every(Array.isArray)).toBe(
      true,
    );
    const regions = new Set((availability['configurations'] as Offer[]).flatMap((offer) => offer.regions));
    await Promise.all([...regions].map((region) => live(region)));
    const broken = await ask('POST', '/instances', { body: instanceRequest({ name: 'broken' }) });
    await waitFor(`/instances/${broken.body['id']}`, 'ERROR');
    await ask('DELETE', `/instances/${broken.body['id']}`);
    await waitFor(`/instances/${broken.body['id']}`, 'GONE');
    await fail();
  });
  afterAll(async () => {
    await orchestrator[Symbol.asyncDispose]();
  });

  async function live(region: string): Promise<void> {
    const { body } = await ask('POST', '/instances', {
      body: instanceRequest({ region, name: `in ${region}`, ...nothing }),
    });
    const path = `/instances/${body['id']}`;
    await waitFor(path, 'ONLINE');
    const volume = await ask('POST', '/volumes', {
      body: volumeRequest({ region, type: null, instance_ids: [body['id']] }),
    });
    await waitFor(`/volumes/${volume.body['id']}`, 'ATTACHED');
    await ask('DELETE', `/volumes/${volume.body['id']}`);
    await ask('POST', `/volumes/${volume.body['id']}/detach`);
    await waitFor(`/volumes/${volume.body['id']}`, 'AVAILABLE');
    await ask('POST', `${path}/stop`);
    await waitFor(path, 'STOPPED');
    await ask('GET', `/instances?region=${region}`);
    await ask('POST', `${path}/start`);
    await waitFor(path, 'ONLINE');
    await ask('DELETE', `/volumes/${volume.body['id']}`);
    await waitFor(`/volumes/${volume.body['id']}`, 'GONE');
    await ask('DELETE', path);
    await waitFor(path, 'GONE');
    await ask('DELETE', path);
  }

  /** Errors of every kind that a request can bring about. */
  async function fail(): Promise<void> {
    const gpus = { configuration_id: 'h100-sxm-1x' };
    for (let count = 0; count < 4; count++) await ask('POST', '/instances', { body: instanceRequest(gpus) });
    for (const body of [
      instanceRequest({ region: 'ap-singapore' }),
      instanceRequest({ region: 'nowhere', ssh_keys: ['x'] }),
      instanceRequest({ configuration_id: 'a40-1x', cloud_init: {} }),
      instanceRequest({ configuration_id: 'rtx-pro-6000-1x' }),
      '{',
      'x'.repeat(1_100_000),
    ])
      await ask('POST', '/instances', { body });
    await ask('POST', '/volumes', { body: volumeRequest({ region: 'ap-singapore' }) });
    await ask('GET', '/configurations?instance_type=LAPTOP');
    await ask('GET', '/nothing');
    await ask('PUT', '/instances');
    await ask('GET', '/instances', { key: null });
  }

  it('includes every status', () => {
    const statuses = new Set(replies.map(({ status }) => status));
    for (const status of [200, 201, 204, 400, 401, 404, 405, 409, 413]) expect(statuses).toContain(status);
    expect(replies.some(({ text }) => text.includes('"status":"ERROR"'))).toBe(true);
  });

  it('never has a datacenter code or an owner ref, not in the words of an ERROR either [no-internal-names]', () => {
    const codes = [...orchestrator.catalog.regions.values()].map(({ datacenter }) => datacenter);
    expect(codes).toHaveLength(4);
    for (const { name, text, headers } of replies) {
      const all = `${text} ${JSON.stringify([...headers])}`.toLowerCase();
      for (const secret of [...codes, 'berth-inst', 'berth-vol'])
        expect([name, all.includes(secret)]).toEqual([name, false]);
    }
    const [error] = replies.flatMap(({ text }) => /"error":"([^"]+)"/.exec(text)?.[1] ?? []);
    expect(error).toBe('The provider has no quota left for this instance.');
  });

  it('has one set of region tokens, wherever it stands', () => {
    const known = new Set(orchestrator.catalog.regions.keys());
    for (const { text } of replies)
      for (const [, token = ''] of text.matchAll(/"region":"([^"]*)"/g)) expect(known).toContain(token);
    const of = (name: string) => JSON.parse(replies.find((reply) => reply.name === name)?.text ?? '{}');
    const configurations: Offer[] = of('GET /configurations').configurations;
    const sold = new Set(configurations.flatMap(({ regions }) => regions));
    const locations: { id: string }[] = of('GET /volumes/locations').locations;
    expect(sold).toEqual(known);
    for (const { id } of locations) expect(sold).toContain(id);
  });

  it('has its times in RFC 3339 UTC, and updated_at never before created_at', () => {
    let times = 0;
    for (const { text } of replies)
      for (const [, time = ''] of text.matchAll(/"(?:created|updated)_at":"([^"]*)"/g)) {
        expect(time).toMatch(RFC_3339_UTC);
        times++;
      }
    for (const { text } of replies)
      for (const [, created = '', updated = ''] of text.matchAll(
        /"created_at":"([^"]*)","updated_at":"([^"]*)"/g,
      ))
        expect(updated >= created).toBe(true);
    expect(times).toBeGreaterThan(50);
  });

  it('has an error only under an error status, and then in the envelope [errors-have-error-status]', () => {
    for (const { name, status, text } of replies) {
      const isEnvelope = text.startsWith('{"error":{"code":');
      expect([name, status, isEnvelope]).toEqual([name, status, status >= 400]);
    }
  });

  it('has an X-Request-Id, each its own', () => {
    const ids = replies.map(({ headers }) => headers.get('x-request-id'));
    for (const id of ids) expect(id).toMatch(/^[\w.-]{1,64}$/);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('has JSON as its type, and forbids shared caches to keep it', () => {
    for (const { name, status, headers } of replies) {
      if (status !== 204) expect([name, headers.get('content-type')]).toEqual([name, 'application/json']);
      if (name.startsWith('GET') && status === 200)
        expect(headers.get('cache-control')).toBe('private, no-cache');
      if (status >= 400) expect(headers.get('cache-control')).toBe('no-store');
    }
  });
});

describe('X-Request-Id', () => {
  it('is taken from the client where it is harmless, and only there', async () => {
    await using orchestrator = await startTestOrchestrator();
    const idFor = async (given: string) => {
      const { headers } = await orchestrator.request('GET', '/instances', {
        headers: { 'X-Request-Id': given },
      });
      return headers.get('x-request-id');
    };
    expect(await idFor('trace-42.a_B')).toBe('trace-42.a_B');
    for (const bad of ['a b', '<script>', 'x'.repeat(65), '{"a":1}', ''])
      expect(await idFor(bad)).not.toBe(bad);
  });
});

describe('ETag', () => {
  it('is on every successful GET; If-None-Match gives 304 without a body', async () => {
    await using orchestrator = await startTestOrchestrator();
    const instance = await orchestrator.request('POST', '/instances', { body: instanceRequest() });
    const volume = await orchestrator.request('POST', '/volumes', { body: volumeRequest() });
    await orchestrator.waitFor(String(instance.body['id']), 'ONLINE');
    const seen = new Map<string, string>();
    for (const path of [
      ...['/configurations', '/configurations?instance_type=SPOT', '/availability', '/volumes/locations'],
      ...[
        '/instances',
        '/instances?region=nowhere',
        `/instances/${instance.body['id']}`,
        `/volumes/${volume.body['id']}`,
      ],
    ]) {
      const { headers, text } = await orchestrator.request('GET', path);
      const etag = headers.get('etag') ?? '';
      expect(etag).toMatch(/^"[\w-]{22}"$/);
      expect(seen.get(etag) ?? text).toBe(text);
      seen.set(etag, text);
      expect((await orchestrator.request('GET', path)).headers.get('etag')).toBe(etag);
      for (const match of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
        const again = await orchestrator.request('GET', path, { headers: { 'If-None-Match': match } });
        expect([path, match, again.status, again.text]).toEqual([path, match, 304, '']);
        expect(again.headers.get('etag')).toBe(etag);
        expect(again.headers.get('cache-control')).toBe('private, no-cache');
        expect(again.headers.get('content-type')).toBeNull();
      }
      for (const other of ['"other"', etag.replaceAll('"', ''), '""', 'W/"other"']) {
        const again = await orchestrator.request('GET', path, { headers: { 'If-None-Match': other } });
        expect([again.status, again.text]).toEqual([200, text]);
      }
    }
    expect(new Set(seen.values()).size).toBe(seen.size);
  });

  it('changes when the instance does', async () => {
    await using orchestrator = await startTestOrchestrator();
    const { body } = await orchestrator.request('POST', '/instances', { body: instanceRequest() });
    const path = `/instances/${body['id']}`;
    await orchestrator.waitFor(String(body['id']), 'ONLINE');
    const online = await orchestrator.request('GET', path);
    const headers = { 'If-None-Match': online.headers.get('etag') ?? '' };
    expect((await orchestrator.request('GET', path, { headers })).status).toBe(304);
    await orchestrator.request('POST', `${path}/stop`);
    expect((await orchestrator.request('GET', path, { headers })).status).toBe(200);
  });

  it('never makes an error a 304', async () => {
    await using orchestrator = await startTestOrchestrator();
    const headers = { 'If-None-Match': '*' };
    expect((await orchestrator.request('GET', '/instances/nope', { headers })).status).toBe(404);
    expect((await orchestrator.request('GET', '/nothing', { headers })).status).toBe(404);
    expect((await orchestrator.request('GET', '/configurations?instance_type=x', { headers })).status).toBe(
      400,
    );
    expect((await orchestrator.request('GET', '/instances', { headers, key: null })).status).toBe(401);
  });

  it('is the same on both ways to the polled read, as is every other byte', async () => {
    await using orchestrator = await startTestOrchestrator();
    await using server = await startServer(orchestrator);
    await using client = await WireClient.open(server.port);
    const { body } = await orchestrator.request('POST', '/instances', { body: instanceRequest() });
    await orchestrator.waitFor(String(body['id']), 'ONLINE');
    const path = `/v1/instances/${body['id']}`;
    const ask = async (headers: Record<string, string>) => {
      client.request('GET', path, { Authorization: `Bearer ${orchestrator.key}`, ...headers });
      const reply = await client.reply('GET', path);
      const lines = reply?.rawHeaders.filter((line) => !/^date:/i.test(line)) ?? [];
      return {
        status: reply?.status,
        body: reply?.body,
        headers: lines
          .map((line) =>
            line.replace(/^[^:]+/, (name) => name.toLowerCase()).replace(/^(x-request-id):.*/, '$1'),
          )
          .sort(),
      };
    };
    const polled = async () =>
      Number(
        /^berth_polled_reads_total (\d+)$/m.exec(
          await (await orchestrator.admin.fetch('/metrics')).text(),
        )?.[1],
      );
    await ask({});
    const etag = (await orchestrator.request('GET', `/instances/${body['id']}`)).headers.get('etag') ?? '';
    const conditions: Record<string, string>[] = [
      {},
      { 'If-None-Match': etag },
      { 'If-None-Match': '*' },
      { 'If-None-Match': '"x"' },
    ];
    for (const headers of conditions) {
      const before = await polled();
      const fast = await ask(headers);
      expect(await polled()).toBe(before + 1);
      const slow = await ask({ ...headers, 'X-Request-Id': 'slow' });
      expect(await polled()).toBe(before + 1);
      expect(fast).toEqual(slow);
    }
  });
});
