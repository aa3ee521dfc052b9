import { expect, it } from 'vitest';
import { benchOf, startBench } from './faults/bench.fixture.ts';

it('knows a provider by its letter, and refuses one that is not there', async () => {
  await using sandbox = await startBench();
  const { ask } = await benchOf(sandbox);
  await sandbox.faults.arm('http-500', { provider: 'd', route: 'GET /availability' });
  expect((await ask('GET', '/availability')).status).toBe(500);
  const none = 'provider: expected one of provider-d, provider-e, provider-b';
  await expect(sandbox.faults.arm('http-500', { provider: 'q' })).rejects.toThrow(none);
  expect(() => sandbox.transitions.set({ mode: 'manual', provider: 'q' })).toThrow(none);
  sandbox.transitions.set({ mode: 'manual', provider: 'd' });
  expect(sandbox.transitions.settings).toEqual([{ mode: 'manual', provider: 'provider-d' }]);
  expect(sandbox.faults.list()).toEqual([]);
});

it('takes a route given as the end of its URL, and refuses an invalid route', async () => {
  await using sandbox = await startBench();
  const { ask } = await benchOf(sandbox);
  await sandbox.faults.arm('http-500', { route: 'GET /v1/availability' });
  expect((await ask('GET', '/availability')).status).toBe(500);
  for (const route of ['availability /', 'GET availability', 'get /availability', ''])
    await expect(sandbox.faults.arm('http-500', { route })).rejects.toThrow(
      'expected `*`, a method and a path such as `GET /instances/{id}`',
    );
});

it('names the fault that may be meant', async () => {
  await using sandbox = await startBench();
  await expect(sandbox.faults.arm('http-5000' as 'http-500')).rejects.toThrow(
    'fault: expected a fault, such as http-500; see GET /control/faults/catalog or docs/sandbox-faults.md for all faults',
  );
  for (const [words, name] of [
    ['OFFLINE', 'flapping'],
    ['sold out', 'sold-out'],
    ['capacity lost', 'capacity-gone'],
    ['404', 'false-404'],
    // A name goes before the descriptions that have the word.
    ['status', 'status-late'],
  ])
    await expect(sandbox.faults.arm(words as 'http-500')).rejects.toThrow(
      new RegExp(`expected a fault, such as .*\\b${name}\\b`),
    );
  for (const nothing of ['', '???'])
    await expect(sandbox.faults.arm(nothing as 'http-500')).rejects.toThrow('fault: expected a fault; see');
  await expect(sandbox.faults.arm('http-500', { rout: '*' } as object)).rejects.toThrow(
    'Unrecognized key: "rout"',
  );
});

it('refuses a second account of a name, and a name that is none', async () => {
  await using sandbox = await startBench({ marketplace: true });
  const post = async (name: string) => {
    const reply = await sandbox.fetch('/control/accounts', {
      method: 'POST',
      headers: { authorization: `Bearer ${sandbox.controlKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name }),
    });
    return [reply.status, ((await reply.json()) as { error?: { message: string } }).error?.message];
  };
  const taken = 'name: there is an account of that name already';
  expect(await post('mine')).toEqual([201, undefined]);
  for (const name of ['mine', 'default', 'marketplace']) expect(await post(name)).toEqual([400, taken]);
  await expect(sandbox.account('mine')).rejects.toThrow(taken);
  expect(await post('Not a name')).toEqual([400, expect.stringContaining('is not a valid account name')]);
  const names = await Promise.all([sandbox.account(), sandbox.account()]);
  expect(names.map(({ name }) => name)).toEqual(['account-1', 'account-2']);
  await sandbox.control.reset();
  expect((await sandbox.account()).name).toBe('account-1');
});

it('lets a client give up, in its own time and in that of the sandbox', async () => {
  await using sandbox = await startBench();
  const { send } = await benchOf(sandbox);
  await sandbox.faults.arm('latency', { ms: 60_000 });
  const begunAt = sandbox.clock.now();
  const late = send('GET', '/availability', undefined, sandbox.clock.timeout(10_000));
  await expect(late).rejects.toMatchObject({ name: 'TimeoutError' });
  expect(sandbox.clock.now() - begunAt).toBe(10_000);
  sandbox.clock.freeze();
  const giveUp = new AbortController();
  const waiting = send('GET', '/availability', undefined, giveUp.signal);
  giveUp.abort();
  await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
});

it.each<[string, 'half-body-silence' | 'slow-body']>([
  ['that stalls', 'half-body-silence'],
  ['that comes byte by byte', 'slow-body'],
])('lets a client give up a body %s, in the time of the sandbox', async (_what, fault) => {
  await using sandbox = await startBench();
  const { baseUrl, apiKey } = sandbox.provider('d');
  await sandbox.faults.arm(fault);
  const begunAt = sandbox.clock.now();
  const answer = await sandbox.fetch(`${baseUrl}/availability`, {
    headers: { authorization: `Bearer ${apiKey}` },
    signal: sandbox.clock.timeout(10_000),
  });
  expect(answer.status).toBe(200);
  await expect(answer.text()).rejects.toMatchObject({ name: 'TimeoutError' });
  expect(sandbox.clock.now() - begunAt).toBe(10_000);
});
