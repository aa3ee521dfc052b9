import { expect, it } from 'vitest';
import { createSandbox } from '../../compose/sandbox/sandbox.ts';
import type { Sandbox } from '../sandbox.ts';

type Json = Record<string, unknown>;

const SSH_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVvbPHlyOu4Rzn6yIy3N+mIZLDBkd5yTJPYJVgSuSMK test@example.com';
const create = {
  configuration_id: 'a-cpu-8x32',
  region: 'us-dallas',
  ssh_keys: [SSH_KEY],
  name: 'demo',
};

/** A client of provider-a. */
function clientOf(sandbox: Sandbox, { baseUrl, apiKey } = sandbox.provider('a')) {
  return async (method: string, path: string, body?: unknown) => {
    const response = await sandbox.fetch(`${baseUrl}${path}`, {
      method,
      headers: { Authorization: `Bearer ${apiKey}`, 'Content-Type': 'application/json' },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    return {
      status: response.status,
      body: (await response.json()) as Json & { id: string; status: string },
    };
  };
}

it('asks for its own key, and for no other', async () => {
  await using sandbox = await createSandbox();
  const ask = (key?: string) =>
    sandbox.fetch('/control/info', { headers: key === undefined ? {} : { Authorization: `Bearer ${key}` } });
  expect((await ask()).status).toBe(401);
  expect((await ask(sandbox.provider('a').apiKey)).status).toBe(401);
  const info = await ask(sandbox.controlKey);
  expect([info.status, await info.json()]).toEqual([200, await sandbox.control.info()]);
  expect(await sandbox.control.info()).toEqual({
    seed: '1',
    account: {
      name: 'default',
      providers: {
        'provider-a': {
          base_url: sandbox.provider('a').baseUrl,
          api_key: sandbox.provider('a').apiKey,
        },
      },
    },
  });
});

it('reports a missing resource, and the errors of a request', async () => {
  await using sandbox = await createSandbox();
  const ask = async (method: string, path: string, body?: string) => {
    const reply = await sandbox.fetch(`/control${path}`, {
      method,
      headers: { Authorization: `Bearer ${sandbox.controlKey}`, 'Content-Type': 'application/json' },
      body,
    });
    return [reply.status, ((await reply.json()) as { error: { message: string } }).error.message];
  };
  expect(await ask('GET', '/nothing')).toEqual([
    404,
    'There is no GET /control/nothing; the control API is described at /control/openapi.json.',
  ]);
  expect(await ask('POST', '/clock/advance', '{"by":"soon"}')).toEqual([
    400,
    'by: expected a number, or a duration such as 500ms, 90s, 1h30m or 30d',
  ]);
  expect(await ask('POST', '/snapshots/none/restore')).toEqual([404, 'There is no snapshot none.']);
  await expect(sandbox.control.snapshots.restore('none')).rejects.toMatchObject({
    name: 'ControlError',
    status: 404,
    message: 'There is no snapshot none.',
  });
});

it.each<[string, string, number, string]>([
  [
    'lists of lists',
    `{"name":"deep","x":${'['.repeat(50_000)}${']'.repeat(50_000)}}`,
    400,
    'at most 200 levels',
  ],
  ['a text of 2 MB', `{"name":"${'x'.repeat(2_000_000)}"}`, 413, ''],
])('refuses a scenario with %s at once', async (_what, text, status, words) => {
  await using sandbox = await createSandbox();
  const reply = await sandbox.fetch('/control/scenarios', {
    method: 'POST',
    headers: { Authorization: `Bearer ${sandbox.controlKey}`, 'Content-Type': 'application/json' },
    body: text,
  });
  expect(reply.status).toBe(status);
  expect(((await reply.json()) as { error: { message: string } }).error.message).toContain(words);
});

it('advances, freezes and resumes the clock of all servers', async () => {
  await using sandbox = await createSandbox();
  const { clock } = sandbox.control;
  expect(await clock.now()).toMatchObject({
    now: '2026-01-01T00:00:00.000Z',
    kind: 'virtual',
    is_frozen: false,
  });
  expect((await clock.advance('1d2h')).now).toBe('2026-01-02T02:00:00.000Z');
  expect((await clock.advance(1_500)).now).toBe('2026-01-02T02:00:01.500Z');
  await sandbox.clock.advance('1h');
  expect((await clock.now()).now).toBe('2026-01-02T03:00:01.500Z');
  await expect(sandbox.clock.advance('soon')).rejects.toThrow(
    'time cannot be advanced by soon: give milliseconds from 0 to 3155760000000, or a duration such as 500ms',
  );
  expect((await clock.freeze()).is_frozen).toBe(true);
  expect((await clock.resume()).is_frozen).toBe(false);
});

it('keeps a journal of client requests and checks assertions on it [sandbox-journal]', async () => {
  await using sandbox = await createSandbox();
  const { control } = sandbox;
  const account = await control.createAccount('mine');
  const at = account.providers['provider-a'];
  const send = clientOf(sandbox, { baseUrl: at?.base_url ?? '', apiKey: at?.api_key ?? '' } as never);
  const { body } = await send('POST', '/instances', create);
  await control.clock.advance('20s');
  expect((await send('GET', `/instances/${body.id}?region=us-dallas`)).body.status).toBe('ONLINE');
  await control.clock.advance('40s');
  await send('GET', `/instances/${body.id}`);
  await send('GET', '/instance');
  const entries = await control.journal.entries();
  expect(
    entries.map(({ account, operation, resource, status, at }) => [account, operation, resource, status, at]),
  ).toEqual([
    ['mine', 'createInstance', body.id, 201, '2026-01-01T00:00:00.000Z'],
    ['mine', 'getInstance', body.id, 200, '2026-01-01T00:00:20.000Z'],
    ['mine', 'getInstance', body.id, 200, '2026-01-01T00:01:00.000Z'],
    ['mine', undefined, undefined, 404, '2026-01-01T00:01:00.000Z'],
  ]);
  expect(
    await control.journal.entries({ operation: 'getInstance', after: '2026-01-01T00:00:30Z' }),
  ).toHaveLength(1);
  await control.journal.assert(
    { assert: 'never_created_twice' },
    { assert: 'polled_at_least_every', seconds: 40 },
  );
  await expect(control.journal.assert({ assert: 'polled_at_least_every', seconds: 30 })).rejects.toThrow(
    `polled_at_least_every: ${body.id} was not read for 40 s`,
  );
  await control.journal.clear();
  expect(await control.journal.entries()).toEqual([]);
});
