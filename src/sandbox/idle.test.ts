import { expect, it } from 'vitest';
import { createSandbox, type SandboxOptions } from '../compose/sandbox/sandbox.ts';
import type { Sandbox } from './sandbox.ts';

const SSH_KEY =
  'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVvbPHlyOu4Rzn6yIy3N+mIZLDBkd5yTJPYJVgSuSMK test@example.com';
const MINUTE_MS = 60_000;

async function start(options: SandboxOptions = {}) {
  const sandbox: Sandbox = await createSandbox({ providers: ['a'], ...options });
  const { baseUrl, apiKey } = sandbox.provider('a');
  const ask = async (method: string, path: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
    const sent = body === undefined ? {} : { body: JSON.stringify(body) };
    return (await (await sandbox.fetch(`${baseUrl}${path}`, { method, headers, ...sent })).json()) as Record<
      string,
      unknown
    >;
  };
  const { configurations } = (await ask('GET', '/availability')) as {
    configurations: { id: string; regions: string[]; os_options: string[] }[];
  };
  const [offer] = configurations;
  return {
    sandbox,
    create: async () => {
      const made = { configuration_id: offer?.id, region: offer?.regions[0], image: offer?.os_options[0] };
      return String((await ask('POST', '/instances', { ...made, ssh_keys: [SSH_KEY], name: 'one' }))['id']);
    },
    status: async (id: string) => (await ask('GET', `/instances/${id}`))['status'],
  };
}

it('is idle while a fault waits for an occasion that never comes', async () => {
  const { sandbox, create, status } = await start();
  await using _ = sandbox;
  await sandbox.faults.arm('latency', { ms: 10, route: 'POST /volumes' });
  const id = await create();
  expect(await sandbox.clock.advanceUntilIdle()).toBeLessThan(15 * MINUTE_MS);
  expect(await status(id)).toBe('ONLINE');
});

it('does not wait for manual transitions, but for everything else', async () => {
  const { sandbox, create, status } = await start();
  await using _ = sandbox;
  sandbox.transitions.set({ mode: 'manual' });
  const held = await create();
  await sandbox.clock.advance(1_000);
  sandbox.transitions.set({ mode: 'usual' });
  const other = await create();
  expect(await sandbox.clock.advanceUntilIdle()).toBeLessThan(15 * MINUTE_MS);
  expect([await status(held), await status(other)]).toEqual(['PROVISIONING', 'ONLINE']);
  sandbox.transitions.finish();
  await sandbox.clock.advanceUntilIdle();
  expect(await status(held)).toBe('ONLINE');
});

it('reports that work does not end, and what may block it', async () => {
  const { sandbox, create } = await start();
  await using _ = sandbox;
  await sandbox.faults.arm('platform-call-lost', { times: 'sticky' });
  await create();
  await expect(sandbox.clock.advanceUntilIdle({ limitMs: 5 * MINUTE_MS })).rejects.toThrow(
    'still in progress after 5 minutes of sandbox time: a fault may keep it going',
  );
});

it('waits for each marketplace deployment, even with machines in manual transitions', async () => {
  const { sandbox, create } = await start({ marketplace: true });
  await using _ = sandbox;
  sandbox.transitions.set({ mode: 'manual' });
  await create();
  await sandbox.clock.advance(1_000);
  sandbox.transitions.set({ mode: 'usual' });
  const authorization = `Bearer ${sandbox.defaultAccount.marketplace?.apiKey}`;
  const made = await sandbox.fetch('/api/deployments', {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ provider: 'provider-a', offerId: 'a-cpu-8x32', gpuCount: 0, region: 'us-dallas' },
      ...{ operatingSystem: 'ubuntu-24.04', name: 'web', ssh_public_key: SSH_KEY },
    }),
  });
  const { id } = (await made.json()) as { id: string };
  await sandbox.clock.advanceUntilIdle();
  const answer = await sandbox.fetch(`/api/deployments/${id}`, {
    headers: { authorization },
  });
  expect(await answer.json()).toMatchObject({ status: 'running' });
});
