import type { Sandbox } from 'berth/sandbox';
import { sandboxTest } from 'berth/sandbox/vitest';
import { describe, expect } from 'vitest';
import { createInstance, type Provider, waitUntilOnline } from './client.ts';

const test = sandboxTest({ providers: ['d'], timing: { boot: [50_000, 90_000] } });
const order = {
  name: 'training',
  ssh_keys: ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVvbPHlyOu4Rzn6yIy3N+mIZLDBkd5yTJPYJVgSuSMK training'],
};

/** The client's way to the provider: in process, with the time of the sandbox for its pauses and its deadlines. */
function providerOf({ clock, fetch, ...sandbox }: Sandbox): Provider {
  const { baseUrl, apiKey } = sandbox.provider('d');
  return { baseUrl, apiKey, fetch, sleep: (ms) => clock.advance(ms), timeout: (ms) => clock.timeout(ms) };
}

async function orderOf({ baseUrl, apiKey, fetch }: Provider) {
  const answer = await fetch(`${baseUrl}/availability`, { headers: { authorization: `Bearer ${apiKey}` } });
  const { configurations } = (await answer.json()) as { configurations: { id: string; regions: [string] }[] };
  const [offer] = configurations;
  if (offer === undefined) throw new Error('nothing is for sale');
  return { ...order, configuration_id: offer.id, region: offer.regions[0] };
}

/** What holds of a client whatever goes wrong. */
function boughtOnce({ control }: Sandbox): Promise<unknown> {
  return control.journal.assert({ assert: 'never_created_twice' });
}

test('waits until a machine is ONLINE, and asks at least each 30 seconds', async ({ sandbox }) => {
  const provider = providerOf(sandbox);
  const { id } = await createInstance(provider, await orderOf(provider), 'first');
  expect(await waitUntilOnline(provider, id)).toMatchObject({ status: 'ONLINE' });
  await sandbox.control.journal.assert({ assert: 'polled_at_least_every', seconds: 30 });
});

describe('buys one machine where its create meets', () => {
  test.for(['answer-lost', 'no-answer', 'request-lost', 'http-429', 'http-504', 'truncated-json'] as const)(
    '%s',
    async (fault, { sandbox }) => {
      const provider = providerOf(sandbox);
      const bought = await orderOf(provider);
      const armed = await sandbox.faults.arm(fault, { route: 'POST /instances', times: 2 });
      const { id } = await createInstance(provider, bought, fault);
      expect(armed.hits).toBe(2);
      expect(await waitUntilOnline(provider, id)).toMatchObject({ status: 'ONLINE' });
      await boughtOnce(sandbox);
    },
  );
});

describe('keeps its machine where a poll meets', () => {
  test.for(['false-404', 'http-500', 'html-page', 'half-body-reset', 'unknown-status'] as const)(
    '%s',
    async (fault, { sandbox }) => {
      const provider = providerOf(sandbox);
      const { id } = await createInstance(provider, await orderOf(provider), fault);
      const armed = await sandbox.faults.arm(fault, { instance: id, times: 2 });
      expect(await waitUntilOnline(provider, id)).toMatchObject({ id, status: 'ONLINE' });
      expect(armed.hits).toBe(2);
    },
  );
});

test('gives up a machine whose boot fails', async ({ sandbox }) => {
  const provider = providerOf(sandbox);
  await sandbox.faults.arm('boot-fails');
  const { id } = await createInstance(provider, await orderOf(provider), 'failing');
  expect(await waitUntilOnline(provider, id)).toMatchObject({ status: 'ERROR' });
});

test('would buy two without an idempotency key: the journal tells', async ({ sandbox }) => {
  const provider = providerOf(sandbox);
  const bought = await orderOf(provider);
  const fetch: Provider['fetch'] = (url, init) => {
    const { 'idempotency-key': _dropped, ...headers } = init.headers as Record<string, string>;
    return provider.fetch(url, { ...init, headers });
  };
  await sandbox.faults.arm('answer-lost', { route: 'POST /instances' });
  await createInstance({ ...provider, fetch }, bought, 'ignored');
  await expect(boughtOnce(sandbox)).rejects.toThrow('never_created_twice');
});
