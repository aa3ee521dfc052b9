import { expect, it } from 'vitest';
import { benchOf, startBench } from '../faults/bench.fixture.ts';
import type { Sandbox } from '../sandbox.ts';

/** Sends a request to the control API as curl would, and returns the reply. */
async function ask(sandbox: Sandbox, method: string, path: string, body?: unknown) {
  const reply = await sandbox.fetch(`/control${path}`, {
    method,
    headers: { Authorization: `Bearer ${sandbox.controlKey}`, 'Content-Type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: each route has an answer of its own
  return { status: reply.status, body: (await reply.json()) as any };
}

it('arms a fault, reports each time that it triggered, and disarms it [control-faults]', async () => {
  await using sandbox = await startBench();
  const bench = await benchOf(sandbox);
  const armed = await ask(sandbox, 'POST', '/faults', {
    fault: 'http-500',
    provider: 'd',
    route: 'POST /instances',
    times: 2,
  });
  expect([armed.status, armed.body]).toEqual([
    201,
    {
      id: 'fault-1',
      fault: 'http-500',
      options: expect.objectContaining({ provider: 'provider-d', times: 2 }),
      seen: 0,
      hits: 0,
      is_over: false,
    },
  ]);
  expect([(await bench.order('a')).status, (await bench.order('b')).status]).toEqual([500, 500]);
  expect((await bench.order('c')).status).toBe(201);
  const { control } = sandbox;
  expect(await control.faults.list()).toEqual([]);
  expect(await control.faults.list({ all: true })).toMatchObject([{ hits: 2, is_over: true }]);
  expect(await control.faults.events()).toMatchObject([
    { fault: 'http-500', id: 'fault-1', step: expect.stringContaining('POST /instances') },
    { fault: 'http-500' },
  ]);
  const { id } = await control.faults.arm('false-404', { times: 'sticky' });
  await control.faults.disarm(id);
  await expect(control.faults.disarm(id)).rejects.toMatchObject({ status: 404 });
  await control.faults.arm('http-503', { times: 'sticky' });
  await control.faults.clear();
  expect((await bench.ask('GET', '/instances')).status).toBe(200);
});

it('reports an invalid arming, and lists the faults that can be armed', async () => {
  await using sandbox = await startBench();
  const issueOf = async (path: string, body: object) => {
    const { status, body: reply } = await ask(sandbox, 'POST', path, body);
    return [status, reply.error.details.issues[0].path];
  };
  expect(await issueOf('/faults', { fault: 'no-such-fault' })).toEqual([400, 'fault']);
  expect(await issueOf('/faults', { fault: 'latency', provider: 'z' })).toEqual([400, 'provider']);
  expect(await issueOf('/faults', { fault: 'latency', ms: 'long' })).toEqual([400, 'ms']);
  expect(await issueOf('/transitions', { mode: 'polls', polls: 0 })).toEqual([400, 'polls']);
  const catalog = await sandbox.control.faults.catalog();
  expect(catalog.length).toBeGreaterThanOrEqual(40);
  expect(catalog.find(({ fault }) => fault === 'latency')).toMatchObject({
    layer: 'connection',
    settings: { properties: { ms: expect.anything() } },
  });
});

it('finishes transitions after a number of polls, or on request', async () => {
  await using sandbox = await startBench();
  const bench = await benchOf(sandbox);
  const { transitions } = sandbox.control;
  await transitions.set({ mode: 'manual', provider: 'd' });
  const { id } = (await bench.order('held')).body;
  await bench.pass(60);
  expect((await bench.read(id)).body.status).toBe('PROVISIONING');
  const { held } = await transitions.show();
  expect(held).toEqual([{ provider: 'provider-d', instance: id, phase: 'boot', polls_left: null }]);
  expect(await transitions.finish({ instance: id })).toBe(1);
  expect((await bench.until(id, 'ONLINE', 10)).status).toBe(200);
  await transitions.clear();
  expect(await transitions.show()).toEqual({ settings: [], held: [] });
});

it('a scenario arms faults and sets transitions, by the names of its steps', async () => {
  await using sandbox = await startBench();
  const made = await sandbox.control.play({
    name: 'rough',
    steps: [
      { do: 'create_instance', as: 'web', provider: 'd' },
      { do: 'arm', fault: { fault: 'false-404', provider: 'd', instance: 'web' } },
      { do: 'transitions', transitions: { mode: 'timed', ms: 90_000, phase: 'stop', instance: 'web' } },
    ],
  });
  const id = made['web']?.id ?? '';
  const { baseUrl, apiKey } = sandbox.provider('d');
  const read = async () =>
    (await sandbox.fetch(`${baseUrl}/instances/${id}`, { headers: { Authorization: `Bearer ${apiKey}` } }))
      .status;
  expect([await read(), await read()]).toEqual([404, 200]);
  expect((await sandbox.control.transitions.show()).settings).toMatchObject([{ instance: id, ms: 90_000 }]);
});
