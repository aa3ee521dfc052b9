import { describe, expect, it } from 'vitest';
import { newPublicKey } from '../support/doubles/ssh-keys.ts';
import { startTestOrchestrator, type TestOrchestrator } from '../support/orchestrator.ts';
import { instanceRequest, volumeRequest } from '../support/rows/requests.ts';
import { VirtualClock } from '../support/time/virtual-clock.ts';

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
      reconcile: { watchIntervalMs: 600_000_000 },
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
