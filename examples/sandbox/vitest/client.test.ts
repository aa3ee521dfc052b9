import { type SandboxFixtures, sandboxTest } from 'berth/sandbox/vitest';
import { expect } from 'vitest';
import { createInstance, type Provider, waitUntilOnline } from './client.ts';

const test = sandboxTest({ providers: ['d'], timing: { boot: [50_000, 90_000] } });
const order = {
  name: 'training',
  ssh_keys: ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBVvbPHlyOu4Rzn6yIy3N+mIZLDBkd5yTJPYJVgSuSMK training'],
};

/** The client's way to the provider: in process, with the sandbox's clock for its pauses. */
function providerOf({ sandbox, account }: Pick<SandboxFixtures, 'sandbox' | 'account'>): Provider {
  const { baseUrl = '', apiKey = '' } = account.providers['provider-d'] ?? {};
  return { baseUrl, apiKey, fetch: sandbox.fetch, sleep: (ms) => sandbox.clock.advance(ms) };
}

async function orderOf({ baseUrl, apiKey, fetch }: Provider) {
  const answer = await fetch(`${baseUrl}/availability`, { headers: { authorization: `Bearer ${apiKey}` } });
  const { configurations } = (await answer.json()) as { configurations: { id: string; regions: [string] }[] };
  const [offer] = configurations;
  if (offer === undefined) throw new Error('nothing is for sale');
  return { ...order, configuration_id: offer.id, region: offer.regions[0] };
}

/** The first answer is lost on its way, after the provider did what was asked. */
function losingFirstAnswer(fetch: Provider['fetch']): Provider['fetch'] {
  let isLost = false;
  return async (url, init) => {
    const answer = await fetch(url, init);
    if (isLost) return answer;
    isLost = true;
    throw new TypeError('terminated');
  };
}

test('waits until a machine is ONLINE, and asks at least each 30 seconds', async ({ sandbox, account }) => {
  const provider = providerOf({ sandbox, account });
  const { id } = await createInstance(provider, await orderOf(provider), 'first');
  expect(await waitUntilOnline(provider, id)).toMatchObject({ status: 'ONLINE' });
  await sandbox.control.journal.assert({
    assert: 'polled_at_least_every',
    seconds: 30,
    where: { account: account.name },
  });
});

test('buys one machine where the answer to its create is lost', async ({ sandbox, account }) => {
  const provider = providerOf({ sandbox, account });
  const bought = await orderOf(provider);
  await createInstance({ ...provider, fetch: losingFirstAnswer(provider.fetch) }, bought, 'lost');
  await sandbox.control.journal.assert({ assert: 'never_created_twice', where: { account: account.name } });
});

test('would buy two without an idempotency key: the journal tells', async ({ sandbox, account }) => {
  const provider = providerOf({ sandbox, account });
  const bought = await orderOf(provider);
  const fetch = losingFirstAnswer((url, init) => {
    const { 'idempotency-key': _dropped, ...headers } = init.headers as Record<string, string>;
    return provider.fetch(url, { ...init, headers });
  });
  await createInstance({ ...provider, fetch }, bought, 'ignored');
  const claim = { assert: 'never_created_twice', where: { account: account.name } } as const;
  await expect(sandbox.control.journal.assert(claim)).rejects.toThrow('never_created_twice');
});
