import { Command } from 'commander';
import { expect, it } from 'vitest';
import { newPublicKey } from '../../test/support/doubles/ssh-keys.ts';
import { createSandbox, type SandboxOptions } from '../compose/sandbox/sandbox.ts';
import { sandboxCommand } from './sandbox-command.ts';
import { toOptions } from './sandbox-options.ts';

const flags = {
  host: '127.0.0.1',
  port: '0',
  providers: 'a,d',
  catalog: 'fixtures/catalogs/provider-d.yaml',
  seed: '7',
  clock: 'virtual',
  startAt: '2026-02-01T00:00:00Z',
  timing: 'boot=5s,stop=1s-3s,volumes.attach=1m',
  marketplace: true,
  creditUsd: '12.5',
  rateLimits: 'off',
  ssh: true,
  capacity: 'catalog',
  origin: 'http://sandbox.example',
  controlKey: 'mine',
} as const;

it('has a flag for each option of the library but its log, and those of a test', () => {
  const given: Required<Omit<SandboxOptions, 'log' | 'signal' | 'must_trigger'>> = {
    providers: ['a', 'd'],
    catalog: 'fixtures/catalogs/provider-d.yaml',
    seed: '7',
    clock: 'virtual',
    start_at: Date.UTC(2026, 1, 1),
    timing: { boot: ['5s', '5s'], stop: ['1s', '3s'], 'volumes.attach': ['1m', '1m'] },
    marketplace: { credit_usd: 12.5 },
    rate_limits: false,
    ssh: true,
    capacity: 'catalog',
    origin: 'http://sandbox.example',
    control_key: 'mine',
  };
  expect(toOptions(flags)).toEqual(given);
  const names = new Set(sandboxCommand().options.map((option) => option.attributeName()));
  expect(Object.keys(flags).filter((name) => !names.has(name))).toEqual([]);
  expect(toOptions({ host: '', port: '' })).toEqual({ clock: 'real' });
  expect(toOptions({ host: '', port: '', scenario: 'f', rateLimits: 'on' })).toEqual({ rate_limits: true });
  expect(sandboxCommand()).toBeInstanceOf(Command);
});

it('takes effect: the credit, the start, the control key', async () => {
  const { ssh: _ssh, origin: _origin, ...rest } = flags;
  await using sandbox = await createSandbox(toOptions(rest));
  expect(sandbox.clock.now()).toBe(Date.UTC(2026, 1, 1));
  expect(sandbox.controlKey).toBe('mine');
  expect([...sandbox.providers.keys()]).toEqual(['provider-a', 'provider-d', 'custom']);
  const { baseUrl = '', apiKey } = sandbox.defaultAccount.marketplace ?? {};
  const ask = async (url: string, key: string | undefined) =>
    (await sandbox.fetch(url, { headers: { authorization: `Bearer ${key}` } })).json();
  expect(await ask(`${baseUrl}/teams`, apiKey)).toMatchObject([{ balance: 12.5 }]);
});

it('sells a catalog as a provider with every capability', async () => {
  const { host, port, catalog } = flags;
  const given = { host, port, catalog };
  await using sandbox = await createSandbox(toOptions({ ...given, timing: 'boot=5s', clock: 'virtual' }));
  const { baseUrl, apiKey } = sandbox.provider('custom');
  const ask = async (method: string, path: string, body: object = {}) => {
    const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
    const init = { method, headers, ...(method === 'POST' && { body: JSON.stringify(body) }) };
    const reply = await sandbox.fetch(`${baseUrl}${path}`, init);
    return { status: reply.status, body: (await reply.json()) as { id: string; status: string } };
  };
  const order = { configuration_id: 'd-cpu-4x16', region: 'us-phoenix', ssh_keys: [newPublicKey()] };
  const { id } = (await ask('POST', '/instances', order)).body;
  await sandbox.clock.advance('4s');
  expect((await ask('GET', `/instances/${id}`)).body.status).toBe('PROVISIONING');
  await sandbox.clock.advance('1m');
  expect((await ask('GET', `/instances/${id}`)).body.status).toBe('ONLINE');
  expect((await ask('POST', `/instances/${id}/stop`)).status).toBe(200);
});

it.each([
  [
    { startAt: '2027-02-29T00:00:00Z' },
    '--start-at 2027-02-29T00:00:00Z: give a time that exists, with its zone, such as',
  ],
  [{ creditUsd: '5' }, '--credit-usd needs --marketplace'],
])('refuses %j', (given, words) => {
  expect(() => toOptions({ host: '', port: '', ...given })).toThrow(words);
});

it.each([
  [{ timing: 'boot=soon' }, 'timing.boot[0] expected a duration such as 500ms, 90s, 1h30m or 30d'],
  [{ timing: 'boot=3s-1s' }, 'timing.boot expected the smaller of the two first'],
  [{ timing: 'bot=1s' }, 'timing'],
  [{ marketplace: true as const, creditUsd: 'much' }, 'marketplace'],
])('createSandbox refuses %j', async (given, words) => {
  await expect(createSandbox(toOptions({ host: '', port: '', ...given }))).rejects.toThrow(words);
});
