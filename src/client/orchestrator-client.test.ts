import { expect, it, onTestFinished } from 'vitest';
import { startServer } from '../../test/support/http/wire.ts';
import { startTestOrchestrator } from '../../test/support/orchestrator.ts';
import { systemClock } from '../runtime/system.ts';
import { createClient } from './create-client.ts';
import type { OrchestratorClient } from './orchestrator-client.ts';

const SSH_KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE+J0VHfWHzDlmHkBMnh/m1SyHWJaKJlZkfOBx7PVBLx user@host';

async function until<T>(look: () => Promise<T>, isDone: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await look();
    if (isDone(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function startBerth() {
  const berth = await startTestOrchestrator();
  onTestFinished(() => berth[Symbol.asyncDispose]());
  const server = await startServer(berth);
  onTestFinished(() => server[Symbol.asyncDispose]());
  const options = {
    baseUrl: `http://127.0.0.1:${server.port}/v1`,
    allowPrivate: true,
    timeoutMs: 10_000,
    clock: systemClock,
  };
  const connect = (credential: Parameters<typeof createClient>[0]['credential']): OrchestratorClient => {
    const client = createClient({ ...options, credential });
    onTestFinished(() => client.close());
    return client;
  };
  return { berth, connect };
}

it('makes, stops, starts and deletes an instance of a real orchestrator', async () => {
  const { berth, connect } = await startBerth();
  const client = connect({ apiKey: berth.key });
  const region = 'eu-frankfurt';
  expect((await client.listConfigurations()).map(({ id }) => id)).toContain('cpu-4x16');
  expect((await client.listAvailability(region)).every(({ regions }) => regions.includes(region))).toBe(true);

  const request = { configuration_id: 'cpu-4x16', region, ssh_keys: [SSH_KEY], name: 'bm-1' };
  const made = await client.createInstance(request, 'dep-1');
  expect(made.status).toBe('PROVISIONING');
  expect((await client.createInstance(request, 'dep-1')).id).toBe(made.id);
  const reads = (status: string) => () =>
    until(
      () => client.getInstance(made.id, region),
      (instance) => instance.status === status,
    );
  expect((await reads('ONLINE')()).public_ip).toBeDefined();
  expect((await client.listInstances()).map(({ id }) => id)).toEqual([made.id]);
  const polled = await client.pollInstance(made.id, region, null);
  const mark = polled === 'unchanged' ? '' : polled.mark;
  // The mark has the entity tag too: the orchestrator can answer 304.
  expect(mark).toMatch(/ ".+"$/);
  expect(await client.pollInstance(made.id, region, mark)).toBe('unchanged');

  await client.stopInstance(made.id, region);
  await reads('STOPPED')();
  await client.startInstance(made.id, region);
  await reads('ONLINE')();
  expect((await client.deleteInstance(made.id, region))?.status).toMatch(/^DESTROY/);
  expect(
    await until(
      () => client.deleteInstance(made.id, region),
      (left) => left === null,
    ),
  ).toBeNull();
  await expect(client.getInstance(made.id, region)).rejects.toMatchObject({
    problem: 'not_found',
    code: 'not_found',
    status: 404,
  });
});

it('makes and deletes a volume of a real orchestrator, with a token that was exchanged', async () => {
  const { berth, connect } = await startBerth();
  const client = connect({ exchange: { api_key: berth.key } });
  const [location] = await client.listVolumeLocations();
  const { id: region = '', types = [] } = location ?? {};
  const request = { name: 'data', size_gb: 100, region, ...(types[0] !== undefined && { type: types[0] }) };
  const { id } = await client.createVolume(request, 'vol-1');
  await until(
    () => client.getVolume(id),
    ({ status }) => status === 'AVAILABLE',
  );
  await client.deleteVolume(id);
  await until(
    () => client.getVolume(id).catch((error: { problem?: string }) => error.problem),
    (left) => left === 'not_found',
  );
  expect(await client.deleteVolume(id)).toBe(false);
});

it('gets the problem of its request in the error', async () => {
  const { berth, connect } = await startBerth();
  const request = { configuration_id: 'no-such-offer', region: 'eu-frankfurt', ssh_keys: [SSH_KEY] };
  await expect(connect({ apiKey: berth.key }).createInstance(request, 'dep-1')).rejects.toMatchObject({
    problem: 'refused',
    status: 400,
    code: 'invalid_request',
    mayHaveHappened: false,
  });
  await expect(connect({ apiKey: 'another-key' }).listInstances()).rejects.toMatchObject({
    problem: 'unauthorized',
    status: 401,
  });
});
