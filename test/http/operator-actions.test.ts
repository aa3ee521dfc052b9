import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestOrchestrator, type TestOrchestrator } from '../support/orchestrator.ts';
import { instanceRequest } from '../support/rows/requests.ts';

const OFFER = 'h100-sxm-1x';
let orchestrator: TestOrchestrator;
let key: string;

beforeAll(async () => {
  orchestrator = await startTestOrchestrator();
  key = await orchestrator.addOperator('ann');
});
afterAll(() => orchestrator[Symbol.asyncDispose]());

async function call(method: string, path: string, body?: object) {
  const response = await orchestrator.admin.fetch(`/operator/v1${path}`, {
    method,
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

async function lastAudit() {
  const [entry] = await orchestrator.store.read.audit.page({ limit: 1 });
  return entry;
}

it('cordons, drains and sells again, in the name of the operator [api-cordon]', async () => {
  const subject = { kind: 'offer', name: OFFER };
  const set = await call('POST', '/cordons', {
    ...subject,
    until: '2999-01-01T00:00:00Z',
    reason: 'a recall',
  });
  expect(set).toMatchObject({
    status: 200,
    body: { ...subject, stands: true, by: 'ann', reason: 'a recall' },
  });
  expect(await lastAudit()).toMatchObject({
    actor: 'ann',
    source: 'api',
    action: 'cordon.add',
    outcome: 'done',
  });
  const order = () =>
    orchestrator.request('POST', '/instances', { body: instanceRequest({ configuration_id: OFFER }) });
  expect((await order()).status).toBe(409);
  expect((await call('GET', '/cordons')).body).toEqual({ cordons: [set.body] });
  expect((await call('POST', '/drain', subject)).body).toMatchObject({ empty: true, instances: [] });
  expect((await call('POST', '/cordons/remove', subject)).status).toBe(200);
  expect((await order()).status).toBe(201);
  expect((await call('POST', '/cordons/remove', subject)).body['error']).toMatchObject({ code: 'not_found' });
  expect(await lastAudit()).toMatchObject({ action: 'cordon.remove', outcome: 'refused' });
  const wrong = await call('POST', '/cordons', { kind: 'rack', name: 'r1' });
  expect(wrong).toMatchObject({ status: 400, body: { error: { code: 'invalid_request' } } });
});

it('plans maintenance and takes it back [api-maintenance]', async () => {
  const window = {
    kind: 'region',
    name: 'eu-helsinki',
    from: '2998-01-01T00:00:00Z',
    until: '2999-01-01T00:00:00Z',
  };
  const planned = await call('POST', '/maintenance', window);
  expect(planned).toMatchObject({ status: 200, body: { stands: false, maintenance: true } });
  const cancelled = await call('POST', `/maintenance/${planned.body['id']}/cancel`);
  expect(cancelled.body).toEqual(planned.body);
  const backwards = { ...window, from: window.until, until: window.from };
  expect(await call('POST', '/maintenance', backwards)).toMatchObject({
    status: 409,
    body: { error: { code: 'invalid_state' } },
  });
});

it('retries and destroys an instance only when it is told to [api-instance-actions]', async () => {
  const { body } = await orchestrator.request('POST', '/instances', { body: instanceRequest() });
  const id = String(body['id']);
  await orchestrator.waitFor(id, 'ONLINE');
  const path = `/instances/${id}/destroy`;
  expect((await call('POST', path, {})).body).toMatchObject({ instance: id, status: 'ONLINE', done: false });
  await orchestrator.waitFor(id, 'ONLINE');
  expect((await call('POST', `/instances/${id}/retry`, { dry_run: false })).body).toMatchObject({
    done: true,
  });
  expect((await call('POST', path, { dry_run: false, reason: 'abuse' })).body).toMatchObject({ done: true });
  expect(await lastAudit()).toMatchObject({
    action: 'instance.destroy',
    subject: id,
    detail: { reason: 'abuse' },
  });
  await orchestrator.waitFor(id, 'GONE');
  expect((await call('POST', '/instances/inst-none/retry', {})).status).toBe(404);
});

it('shows the losses of each platform, and accepts them', async () => {
  expect((await call('GET', '/losses')).body).toMatchObject({
    platforms: [{ platform: 'default', lost: 0 }],
  });
  const accepted = await call('POST', '/losses/accept', { for_s: 300 });
  expect(accepted).toMatchObject({ status: 200, body: { platforms: ['default'] } });
  expect((await call('POST', '/losses/accept', { platform: 'east' })).status).toBe(404);
});

it('reads the catalog anew', async () => {
  const reloaded = await call('POST', '/reload');
  expect(reloaded).toMatchObject({ status: 200, body: { added: [], removed: [], needs_restart: [] } });
  expect(await lastAudit()).toMatchObject({ action: 'configuration.reload', actor: 'ann', source: 'api' });
});
