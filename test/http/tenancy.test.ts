import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/http/http-client.ts';
import { fillPath, routes } from '../support/http/routes.ts';
import {
  type RequestOptions,
  startTestOrchestrator,
  type TestOrchestrator,
} from '../support/orchestrator.ts';
import { type Residue, residueOf } from '../support/processes/residue.ts';
import { instanceRequest, volumeRequest } from '../support/rows/requests.ts';

interface Tenant {
  key: string;
  instanceId: string;
  volumeId: string;
}

const UNKNOWN = { instanceId: `inst-${'0'.repeat(32)}`, volumeId: `vol-${'0'.repeat(32)}` };

let orchestrator: TestOrchestrator;
let ours: Tenant;
let theirs: Tenant;
let clean: Residue;
/** Every reply to us so far. */
let received = '';

beforeAll(async () => {
  orchestrator = await startTestOrchestrator();
  ours = await settle(orchestrator.key, 'ours');
  theirs = await settle(await orchestrator.addAccount('theirs-account'), 'theirs-secret');
  clean = await residueOf(orchestrator);
});
afterAll(async () => {
  await orchestrator[Symbol.asyncDispose]();
});

async function settle(key: string, name: string): Promise<Tenant> {
  const made = await Promise.all([
    orchestrator.request('POST', '/instances', { key, body: instanceRequest({ name: `${name}-machine` }) }),
    orchestrator.request('POST', '/volumes', { key, body: volumeRequest({ name: `${name}-volume` }) }),
  ]);
  const [instanceId = '', volumeId = ''] = made.map(({ body }) => String(body['id']));
  const isSettled = async () => {
    const instance = await orchestrator.request('GET', `/instances/${instanceId}`, { key });
    const volume = await orchestrator.request('GET', `/volumes/${volumeId}`, { key });
    return instance.body['status'] === 'ONLINE' && volume.body['status'] === 'AVAILABLE';
  };
  await until(isSettled, () => `${name} did not settle`);
  return { key, instanceId, volumeId };
}

async function ask(method: string, path: string, options: RequestOptions = {}) {
  const reply = await orchestrator.request(method, path, { key: ours.key, ...options });
  received += `${reply.text}${JSON.stringify([...reply.headers])}`;
  return reply;
}

/** Status and body, with what differs in each reply left out. */
async function answer(method: string, path: string, options: RequestOptions = {}) {
  const { status, text, headers } = await ask(method, path, options);
  const kept = [...headers].filter(([name]) => name !== 'x-request-id' && name !== 'date');
  return { status, text, headers: kept };
}

describe("another account's id reads as one that was never issued", () => {
  const byId = routes.filter(({ path }) => path.includes('{'));

  it('is asked of every route with an id [foreign-id-unknown]', () => {
    expect(byId.length).toBe(11);
  });

  it.each(byId.map((route) => [`${route.method} ${route.path}`, route] as const))(
    '%s',
    async (_name, route) => {
      const { method, path, hasBody } = route;
      const options = hasBody ? { body: { instance_ids: [ours.instanceId], size_gb: 200 } } : {};
      const foreign = await answer(method, fillPath(path, theirs), options);
      const unknown = await answer(method, fillPath(path, UNKNOWN), options);
      expect(foreign.status).toBe(404);
      expect(foreign).toEqual(unknown);
      expect(await residueOf(orchestrator)).toEqual(clean);
    },
  );

  it('HEAD, a region and If-None-Match make no difference', async () => {
    const { headers } = await orchestrator.request('GET', `/instances/${theirs.instanceId}`, {
      key: theirs.key,
    });
    const etag = headers.get('etag') ?? '';
    for (const [method, query, given] of [
      ['HEAD', '', {}],
      ['GET', '?region=eu-frankfurt', {}],
      ['GET', '', { 'If-None-Match': etag }],
      ['GET', '', { 'If-None-Match': '*' }],
    ] as const)
      expect((await ask(method, `/instances/${theirs.instanceId}${query}`, { headers: given })).status).toBe(
        404,
      );
  });

  it('in instance_ids of attach, also beside one of ours, and in those of detach', async () => {
    const attach = (ids: string[]) =>
      answer('POST', `/volumes/${ours.volumeId}/attach`, { body: { instance_ids: ids } });
    expect((await attach([theirs.instanceId])).status).toBe(404);
    expect(await attach([theirs.instanceId])).toEqual(await attach([UNKNOWN.instanceId]));
    expect(await attach([ours.instanceId, theirs.instanceId])).toEqual(
      await attach([ours.instanceId, UNKNOWN.instanceId]),
    );
    const detach = (id: string) =>
      answer('POST', `/volumes/${ours.volumeId}/detach`, { body: { instance_ids: [id] } });
    expect(await detach(theirs.instanceId)).toEqual(await detach(UNKNOWN.instanceId));
    expect(await residueOf(orchestrator)).toEqual(clean);
  });

  it('in volume_ids of a create, and in instance_ids of a new volume', async () => {
    const create = (id: string) =>
      answer('POST', '/instances', { body: instanceRequest({ ssh_keys: ['x'], volume_ids: [id] }) });
    expect(await create(theirs.volumeId)).toEqual(await create(UNKNOWN.volumeId));
    expect((await create(theirs.volumeId)).text).toContain('volume_ids[0]');
    const volume = (id: string) =>
      answer('POST', '/volumes', { body: volumeRequest({ instance_ids: [id] }) });
    expect(await volume(theirs.instanceId)).toEqual(await volume(UNKNOWN.instanceId));
    expect(await residueOf(orchestrator)).toEqual(clean);
  });
});

it('lists only what is ours [lists-own-only]', async () => {
  for (const path of ['/instances', '/instances?region=eu-frankfurt']) {
    const { body } = await ask('GET', path);
    expect((body['instances'] as { id: string }[]).map(({ id }) => id)).toEqual([ours.instanceId]);
  }
});

it('keeps Idempotency-Keys of two accounts apart [idempotency-tenancy]', async () => {
  const body = instanceRequest({ name: 'same' });
  const headers = { 'Idempotency-Key': 'the-same-key' };
  const mine = await ask('POST', '/instances', { body, headers });
  const other = await orchestrator.request('POST', '/instances', { body, headers, key: theirs.key });
  expect([mine.status, other.status]).toEqual([201, 201]);
  expect(other.headers.get('idempotent-replayed')).toBeNull();
  expect(other.body['id']).not.toBe(mine.body['id']);
  const again = await ask('POST', '/instances', { body, headers });
  expect([again.body['id'], again.headers.get('idempotent-replayed')]).toEqual([mine.body['id'], 'true']);
});

it('has revealed nothing about the other account', async () => {
  await ask('GET', '/configurations');
  await ask('GET', '/availability');
  const accounts = await orchestrator.store.read.credentials.listAccounts();
  const { id = '' } = accounts.find(({ name }) => name === 'theirs-account') ?? {};
  expect(received.length).toBeGreaterThan(10_000);
  for (const trace of [theirs.instanceId, theirs.volumeId, theirs.key, 'theirs', id, 'acct-'])
    expect(received).not.toContain(trace);
});

it('has left the other account as it was', async () => {
  const { key, instanceId, volumeId } = theirs;
  const instance = await orchestrator.request('GET', `/instances/${instanceId}`, { key });
  const volume = await orchestrator.request('GET', `/volumes/${volumeId}`, { key });
  expect(instance.body).toMatchObject({ status: 'ONLINE', name: 'theirs-secret-machine' });
  expect(volume.body).toMatchObject({ status: 'AVAILABLE', attached_instance_ids: [] });
});
