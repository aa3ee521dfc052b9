import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { SandboxOptions } from '../../sandbox/options.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { createSandbox } from './sandbox.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'berth-sandbox-state-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

async function ask(sandbox: Sandbox, method: string, path: string, body?: object) {
  const { marketplace } = sandbox.defaultAccount;
  const response = await sandbox.fetch(`/api${path}`, {
    method,
    headers: { authorization: `Bearer ${marketplace?.apiKey}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  return JSON.parse(await response.text());
}

const offer = {
  provider: 'provider-b',
  offerId: 'b-cpu-4x16-spot',
  gpuCount: 0,
  region: 'us-ashburn',
  operatingSystem: 'ubuntu-24.04',
  instanceType: 'SPOT',
  ssh_public_key:
    'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVvbPHlyOu4Rzn6yIy3N+mIZLDBkd5yTJPYJVgSuSMK test@example.com',
};

it.each(['virtual', 'real'] as const)(
  'is there again at the next start, and goes on, with a %s clock [sandbox-state]',
  async (clock) => {
    const options: SandboxOptions = {
      providers: ['b'],
      marketplace: true,
      clock,
      state: join(folder, `${clock}.state`),
    };
    const first = await createSandbox(options);
    const { id } = await ask(first, 'POST', '/deployments', offer);
    await first.clock.advance(60_000);
    await first.faults.arm('http-500', { route: 'POST /volumes' });
    const account = await first.account('mine');
    const before = await ask(first, 'GET', `/deployments/${id}`);
    const closedAt = first.clock.now();
    await first.close();

    await using second = await createSandbox(options);
    expect(before.status).toBe('running');
    expect(await ask(second, 'GET', `/deployments/${id}`)).toMatchObject({
      status: 'running',
      startedAt: before.startedAt,
    });
    expect(second.clock.now()).toBeGreaterThanOrEqual(closedAt);
    expect(await second.control.faults.list()).toMatchObject([{ fault: 'http-500' }]);
    const at = account.providers['provider-b'];
    const mine = await second.fetch(`${at?.baseUrl}/instances`, {
      headers: { authorization: `Bearer ${at?.apiKey}` },
    });
    expect(mine.status).toBe(200);
    await second.clock.advance(20 * 60_000);
    await ask(second, 'DELETE', `/deployments/${id}`);
    const ended = await ask(second, 'GET', `/deployments/${id}`);
    const ranMs = Date.parse(ended.stoppedAt) - Date.parse(ended.startedAt);
    expect(ranMs).toBeGreaterThan(20 * 60_000);
    expect(Math.round(ended.totalCost * 1e6)).toBe(Math.floor((30_000 * ranMs) / 3_600_000));
    await second.control.reset();
    expect(await ask(second, 'GET', '/deployments?status=inactive')).toEqual([]);
  },
);

it('has each change by the time its client gets the answer [sandbox-state-acknowledged]', async () => {
  const options: SandboxOptions = { providers: ['b'], marketplace: true };
  let copies = 0;
  /** Opens a copy of the file, as if the process had been killed now. */
  const afterKill = (state: string): Promise<Sandbox> => {
    const copy = join(folder, `copy-${++copies}.state`);
    copyFileSync(state, copy);
    return createSandbox({ ...options, state: copy });
  };
  const state = join(folder, 'acknowledged.state');
  await using sandbox = await createSandbox({ ...options, state });

  const { id } = await ask(sandbox, 'POST', '/deployments', offer);
  {
    await using again = await afterKill(state);
    expect(await ask(again, 'GET', `/deployments/${id}`)).toMatchObject({ status: 'deploying' });
  }
  await sandbox.control.clock.advance('2h');
  const account = await sandbox.control.createAccount('mine');
  const running = await ask(sandbox, 'GET', `/deployments/${id}`);
  const balance = await ask(sandbox, 'GET', '/balance');
  const own = sandbox.provider('b');
  const listed = async (from: Sandbox, apiKey: string | undefined) => {
    const headers = { authorization: `Bearer ${apiKey}` };
    const response = await from.fetch(`${own.baseUrl}/instances`, { headers });
    return { status: response.status, ...JSON.parse(await response.text()) };
  };
  {
    await using again = await afterKill(state);
    expect(running.status).toBe('running');
    expect(again.clock.now()).toBe(sandbox.clock.now());
    expect(await ask(again, 'GET', `/deployments/${id}`)).toEqual(running);
    expect(await ask(again, 'GET', '/balance')).toEqual(balance);
    const { api_key: apiKey } = account.providers['provider-b'] ?? {};
    expect(await listed(again, apiKey)).toEqual({ status: 200, instances: [] });
  }
  await ask(sandbox, 'DELETE', `/deployments/${id}`);
  await using again = await afterKill(state);
  expect(await ask(again, 'GET', `/deployments/${id}`)).toMatchObject({ stoppedAt: expect.any(String) });
});

it('is refused if it is in use, is of another sandbox, or is not a state file', async () => {
  const state = join(folder, 'refused.state');
  const first = await createSandbox({ state });
  await expect(createSandbox({ state })).rejects.toThrow('Another process runs the sandbox of');
  await first.close();
  await expect(createSandbox({ state, providers: ['a', 'b'] })).rejects.toThrow(
    'is of a sandbox with providers provider-a, not provider-a,provider-b: start it with that',
  );
  await (await createSandbox({ state })).close();
  const other = join(folder, 'other');
  writeFileSync(other, 'name: x');
  await expect(createSandbox({ state: other })).rejects.toThrow('other is not a state file of a sandbox');
  const bytes = readFileSync(state);
  for (const at of [0, Math.floor(bytes.length / 2), bytes.length - 1]) {
    const damaged = Buffer.from(bytes);
    damaged[at] = 255 - (damaged[at] ?? 0);
    writeFileSync(other, damaged);
    await expect(createSandbox({ state: other })).rejects.toThrow('or is damaged: move it away');
  }
  writeFileSync(other, bytes.subarray(0, -100));
  await expect(createSandbox({ state: other })).rejects.toThrow('or is damaged: move it away');
});
