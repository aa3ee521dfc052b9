import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withFaults } from '../../src/drivers/kit/faults.ts';
import type { Catalog } from '../../src/orchestrator/catalog/catalog.ts';
import { instanceRequest, volumeRequest } from '../../testing/requests.ts';
import { newPublicKey } from '../../testing/ssh-keys.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { until } from '../support/http/http-client.ts';
import { startServer, WireClient } from '../support/http/wire.ts';
import {
  type RequestOptions,
  startTestOrchestrator,
  type TestOrchestrator,
} from '../support/orchestrator.ts';

interface Offer {
  id: string;
  instance_type: string;
  available: boolean;
  regions: string[];
}
interface OfferList {
  configurations: Offer[];
}

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
      body: instanceRequest({ region, name: `in ${region}` }),
    });
    const path = `/instances/${body['id']}`;
    await waitFor(path, 'ONLINE');
    const volume = await ask('POST', '/volumes', {
      body: volumeRequest({ region, instance_ids: [body['id']] }),
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
    for (const headers of [
      {},
      { 'If-None-Match': etag },
      { 'If-None-Match': '*' },
      { 'If-None-Match': '"x"' },
    ]) {
      const before = await polled();
      const fast = await ask(headers);
      expect(await polled()).toBe(before + 1);
      const slow = await ask({ ...headers, 'X-Request-Id': 'slow' });
      expect(await polled()).toBe(before + 1);
      expect(fast).toEqual(slow);
    }
  });
});

describe('Idempotency-Key', () => {
  const create = (orchestrator: TestOrchestrator, body: unknown, key: string) =>
    orchestrator.request('POST', '/instances', { body, headers: { 'Idempotency-Key': key } });

  it('gives the same instance for the same body, in its current state [idempotency-replay]', async () => {
    await using orchestrator = await startTestOrchestrator();
    const body = instanceRequest({ name: 'once', cloud_init: { packages: ['jq'], runcmd: ['true'] } });
    const first = await create(orchestrator, body, 'k');
    expect([first.status, first.headers.get('idempotent-replayed')]).toEqual([201, null]);
    const id = String(first.body['id']);
    await orchestrator.waitFor(id, 'ONLINE');
    const reordered = Object.fromEntries(Object.entries(body).reverse());
    const inner = { ...reordered, cloud_init: { runcmd: ['true'], packages: ['jq'] }, unknown_field: 1 };
    for (const same of [body, reordered, inner, JSON.stringify(body, null, 2)]) {
      const again = await create(orchestrator, same, 'k');
      expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([201, 'true']);
      expect(again.body).toMatchObject({ id, status: 'ONLINE' });
    }
    await orchestrator.request('DELETE', `/instances/${id}`);
    expect((await create(orchestrator, body, 'k')).body).toMatchObject({
      id,
      status: expect.stringMatching(/^DESTROY/),
    });
    await orchestrator.waitFor(id, 'GONE');
    const afterwards = await create(orchestrator, body, 'k');
    expect([afterwards.status, afterwards.body['id'], afterwards.body['status']]).toEqual([
      201,
      id,
      'DESTROYED',
    ]);
    expect((await orchestrator.request('GET', '/instances')).body).toEqual({ instances: [] });
  });

  it('with another body is 409, and makes nothing [idempotency-mismatch]', async () => {
    await using orchestrator = await startTestOrchestrator();
    const body = instanceRequest();
    await create(orchestrator, body, 'k');
    for (const other of [
      { ...body, name: 'other' },
      { ...body, ssh_keys: [newPublicKey()] },
      { ...body, region: 'eu-helsinki' },
    ]) {
      const { status, body: error } = await create(orchestrator, other, 'k');
      expect([status, error]).toMatchObject([409, { error: { code: 'idempotency_mismatch' } }]);
    }
    const { body: list } = await orchestrator.request<{ instances: unknown[] }>('GET', '/instances');
    expect(list.instances).toHaveLength(1);
  });

  it('makes one instance of 20 requests at once [idempotency-concurrent]', async () => {
    await using orchestrator = await startTestOrchestrator();
    const body = instanceRequest();
    const replies = await Promise.all(Array.from({ length: 20 }, () => create(orchestrator, body, 'k')));
    expect(new Set(replies.map((reply) => reply.body['id'])).size).toBe(1);
    expect(replies.filter((reply) => reply.headers.get('idempotent-replayed') === null)).toHaveLength(1);
  });

  it('gives the same volume for the same body, and is one key for instances and volumes', async () => {
    await using orchestrator = await startTestOrchestrator();
    const headers = { 'Idempotency-Key': 'k' };
    const ask = (path: string, body: unknown) => orchestrator.request('POST', path, { body, headers });
    const first = await ask('/volumes', volumeRequest());
    const again = await ask('/volumes', volumeRequest());
    expect([again.status, again.body['id'], again.headers.get('idempotent-replayed')]).toEqual([
      201,
      first.body['id'],
      'true',
    ]);
    expect(first.headers.get('idempotent-replayed')).toBeNull();
    for (const other of [
      await ask('/volumes', volumeRequest({ size_gb: 200 })),
      await ask('/instances', instanceRequest()),
    ])
      expect([other.status, other.body]).toMatchObject([409, { error: { code: 'idempotency_mismatch' } }]);
  });

  it('is not used up by a request that was refused', async () => {
    await using orchestrator = await startTestOrchestrator();
    const body = instanceRequest();
    expect((await create(orchestrator, { ...body, ssh_keys: ['x'] }, 'k')).status).toBe(400);
    const drained = instanceRequest({ region: 'ap-singapore' });
    expect((await create(orchestrator, drained, 'k')).status).toBe(409);
    expect((await create(orchestrator, body, 'k')).status).toBe(201);
  });

  it('is forgotten after 24 hours [idempotency-expiry]', async () => {
    const clock = new VirtualClock();
    await using orchestrator = await startTestOrchestrator({
      clock,
      reconcile: { watch_interval_s: 600_000 },
    });
    const body = instanceRequest();
    const { body: first } = await create(orchestrator, body, 'k');
    await orchestrator.request('DELETE', `/instances/${first['id']}`);
    await clock.skip(24 * 3_600_000 - 60_000);
    expect((await create(orchestrator, body, 'k')).body['id']).toBe(first['id']);
    await clock.skip(3 * 60_000);
    const { body: second, headers } = await create(orchestrator, body, 'k');
    expect([second['id'] === first['id'], headers.get('idempotent-replayed')]).toEqual([false, null]);
  });

  it.each(['', ' ', 'a b', 'x'.repeat(256), 'tab\there', 'smörgås'])(
    'that is none is 400: %j',
    async (key) => {
      await using orchestrator = await startTestOrchestrator();
      const { status, body } = await create(orchestrator, instanceRequest(), key);
      expect([status, body]).toMatchObject([
        400,
        { error: { details: { issues: [{ path: 'idempotency-key' }] } } },
      ]);
    },
  );
});

describe('the catalog', () => {
  let orchestrator: TestOrchestrator;
  beforeAll(async () => {
    orchestrator = await startTestOrchestrator();
  });
  afterAll(async () => {
    await orchestrator[Symbol.asyncDispose]();
  });
  const offers = async (path: string) =>
    (await orchestrator.request<OfferList>('GET', path)).body.configurations;

  it('has every offer, deployable or not; /availability only what can be deployed, and where', async () => {
    const all = await offers('/configurations');
    const available = await offers('/availability');
    expect(all.map(({ id }) => id)).toEqual([...orchestrator.catalog.offers.keys()]);
    expect(available.map(({ id }) => id)).toEqual(all.filter((offer) => offer.available).map(({ id }) => id));
    for (const offer of available) {
      expect(offer.available).toBe(true);
      const listed = all.find(({ id }) => id === offer.id);
      expect({ ...offer, regions: null }).toEqual({ ...listed, regions: null });
      for (const region of offer.regions) expect(listed?.regions).toContain(region);
      expect(offer.regions.length).toBeGreaterThan(0);
      expect(offer.regions).not.toContain('ap-singapore');
    }
    expect(all.filter((offer) => !offer.available).length).toBeGreaterThanOrEqual(2);
    expect(all.find(({ id }) => id === 'rtx-pro-6000-1x')).toMatchObject({
      available: false,
      maintenance: true,
    });
    expect(all.some(({ regions }) => regions.includes('ap-singapore'))).toBe(true);
  });

  it('keeps an offer that is sold out, per region and then altogether, and has it back [sold-out-offer-kept]', async () => {
    const { catalog } = orchestrator;
    const few: Catalog = {
      ...catalog,
      offers: new Map(
        [...catalog.offers].map(([id, offer]) => [
          id,
          { ...offer, placements: offer.placements.map((placement) => ({ ...placement, units: 1 })) },
        ]),
      ),
    };
    await using small = await startTestOrchestrator({ catalog: few });
    const find = async (path: string) =>
      (await small.request<OfferList>('GET', path)).body.configurations.find(
        ({ id }) => id === 'h100-sxm-1x',
      );
    const buy = (region: string) =>
      small.request('POST', '/instances', {
        body: instanceRequest({ configuration_id: 'h100-sxm-1x', region }),
      });
    expect((await find('/availability'))?.regions).toEqual(['eu-frankfurt', 'us-ashburn']);
    const { body } = await buy('eu-frankfurt');
    expect((await find('/availability'))?.regions).toEqual(['us-ashburn']);
    expect(await find('/availability?region=eu-frankfurt')).toBeUndefined();
    expect((await find('/configurations'))?.available).toBe(true);
    await buy('us-ashburn');
    expect(await find('/availability')).toBeUndefined();
    expect(await find('/configurations')).toMatchObject({
      available: false,
      regions: ['eu-frankfurt', 'us-ashburn'],
    });
    const refused = await buy('us-ashburn');
    expect([refused.status, refused.body]).toMatchObject([409, { error: { code: 'capacity_unavailable' } }]);
    await small.request('DELETE', `/instances/${body['id']}`);
    await small.waitFor(String(body['id']), 'GONE');
    expect((await find('/availability'))?.regions).toEqual(['eu-frankfurt']);
  });

  it('is filtered by instance_type', async () => {
    for (const type of ['SPOT', 'DEDICATED', 'BARE_METAL', 'CLUSTER']) {
      const found = await offers(`/configurations?instance_type=${type}`);
      expect(found.length).toBeGreaterThan(0);
      expect(new Set(found.map((offer) => offer.instance_type))).toEqual(new Set([type]));
    }
    for (const bad of ['LAPTOP', 'spot', '', 'SPOT,DEDICATED', 'SPOT&instance_type=DEDICATED']) {
      const { status, body } = await orchestrator.request('GET', `/configurations?instance_type=${bad}`);
      expect([status, body]).toMatchObject([
        400,
        { error: { details: { issues: [{ path: 'instance_type' }] } } },
      ]);
    }
  });

  it('is filtered by region; a region that is none gives an empty list', async () => {
    const here = await offers('/availability?region=eu-helsinki');
    expect(here.length).toBeGreaterThan(0);
    for (const offer of here) expect(offer.regions).toContain('eu-helsinki');
    for (const region of ['mars', 'ap-singapore', '', 'hal-hel2-a', 'EU-HELSINKI', '%00'])
      expect(await offers(`/availability?region=${region}`)).toEqual([]);
    const { status, body } = await orchestrator.request('GET', '/instances?region=mars');
    expect([status, body]).toEqual([200, { instances: [] }]);
  });

  it('ignores region where ids are unique, whatever it is [region-ignored]', async () => {
    const { body } = await orchestrator.request('POST', '/instances', { body: instanceRequest() });
    const path = `/instances/${body['id']}`;
    for (const query of ['region=eu-frankfurt', 'region=mars', 'region=', 'region=a&region=b', 'other=1'])
      expect([query, (await orchestrator.request('GET', `${path}?${query}`)).status]).toEqual([query, 200]);
    expect((await orchestrator.request('DELETE', `${path}?region=a&region=b`)).status).toBe(200);
  });
});
