import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSandbox, type SandboxOptions } from '../compose/sandbox/sandbox.ts';
import { marketClient, SSH_KEY, tokenClient } from './isolation.fixture.ts';
import type { Sandbox } from './sandbox.ts';

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await createSandbox({ providers: ['b'], marketplace: true });
});
afterAll(() => sandbox.close());

it('a client that logs in for a token is found in the journal by its account [sandbox-token-account]', async () => {
  const [mine, theirs] = [await sandbox.account(), await sandbox.account()];
  const clients = [await tokenClient(sandbox, mine), await tokenClient(sandbox, theirs)];
  for (const { ask } of clients) await ask('GET', '/instances');
  const entries = await sandbox.control.journal.entries({ account: mine.name });
  expect(entries.map(({ method, path }) => `${method} ${path}`)).toEqual([
    'POST /v1/auth/token',
    'GET /v1/instances',
  ]);
});

it('what the marketplace sends is of its own account, and no assertion about a client counts it', async () => {
  await using own = await createSandbox({ providers: ['b'], marketplace: true });
  const client = marketClient(own, own.defaultAccount);
  await client.until((await client.deploy()).body.id, 'running');
  const { journal } = own.control;
  const creates = await journal.entries({ operation: 'createInstance' });
  expect(creates).toMatchObject([{ provider: 'provider-b', account: 'marketplace' }]);
  // The client asked every 5 seconds, the marketplace more often.
  await journal.assert({ assert: 'polled_at_most_every', seconds: 5 });
});

it('losses of many machines stop no sale, and each is a loss', async () => {
  await using own = await createSandbox({ providers: ['b'], marketplace: true });
  const client = await tokenClient(own, own.defaultAccount);
  const tenant = marketClient(own, own.defaultAccount);
  const orders = await Promise.all(Array.from({ length: 4 }, async () => (await client.order()).body.id));
  const deployed = await Promise.all(Array.from({ length: 4 }, async () => (await tenant.deploy()).body.id));
  for (const id of orders) await client.until(id, 'ONLINE');
  for (const id of deployed) await tenant.until(id, 'running');
  await own.faults.arm('machine-lost', { times: 'sticky' });
  for (const id of orders) await client.until(id, 'gone');
  for (const id of deployed) await tenant.until(id, 'terminated-provider');
  own.faults.clear();
  expect((await client.order()).status).toBe(201);
});

describe('capacity [sandbox-capacity]', () => {
  /** Buys an offer that has two units, four times. */
  const buyFour = async (options: SandboxOptions) => {
    await using small = await createSandbox({ providers: ['a'], ...options });
    const accounts = [await small.account(), await small.account()];
    const statuses: number[] = [];
    for (const { providers } of [...accounts, ...accounts]) {
      const { baseUrl, apiKey } = providers['provider-a'] ?? {};
      const response = await small.fetch(`${baseUrl}/instances`, {
        method: 'POST',
        headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          configuration_id: 'a-h100-sxm-8x',
          region: 'eu-frankfurt',
          ssh_keys: [SSH_KEY],
        }),
      });
      statuses.push(response.status);
    }
    return statuses;
  };

  it('is unlimited: no account takes it from another', async () => {
    expect(await buyFour({})).toEqual([201, 201, 201, 201]);
  });

  it('is that of the catalog on request, and all accounts share it', async () => {
    expect(await buyFour({ capacity: 'catalog' })).toEqual([201, 201, 409, 409]);
  });

  it('cannot be sold out while it is unlimited', async () => {
    const step = { do: 'sell_out', configuration_id: 'b-rtx-4090-1x-spot', region: 'us-ashburn' } as const;
    await expect(sandbox.control.play({ name: 'none', steps: [step] })).rejects.toThrow(
      'the capacity of this sandbox is unlimited: start it with `capacity: catalog`, or arm the fault sold-out',
    );
  });
});

it('the control API gives the ids of an account’s user and team, as the library does', async () => {
  const { marketplace } = await sandbox.account('known');
  const { account } = await sandbox.control.info();
  expect(account.marketplace).toMatchObject({
    user_id: sandbox.defaultAccount.marketplace?.userId,
    team_id: sandbox.defaultAccount.marketplace?.teamId,
  });
  const made = await sandbox.control.createAccount('another');
  expect(made.marketplace?.user_id).toMatch(/^usr-/);
  expect(made.marketplace?.user_id).not.toBe(marketplace?.userId);
});
