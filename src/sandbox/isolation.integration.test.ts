import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSandbox, type SandboxOptions } from '../compose/sandbox/sandbox.ts';
import { marketClient, SSH_KEY, tokenClient } from './isolation.fixture.ts';
import type { Sandbox } from './sandbox.ts';

let sandbox: Sandbox;
beforeAll(async () => {
  sandbox = await createSandbox({ providers: ['b'], marketplace: true });
});
afterAll(() => sandbox.close());

/** Two accounts, each with a client: the first gets the faults, the second must not notice them. */
async function twoOf<Client>(clientOf: (account: Awaited<ReturnType<Sandbox['account']>>) => Client) {
  const [mine, theirs] = [await sandbox.account(), await sandbox.account()];
  return { account: mine.name, mine: await clientOf(mine), theirs: await clientOf(theirs) };
}

describe('a client that logs in for a token [sandbox-token-account]', () => {
  const two = () => twoOf((account) => tokenClient(sandbox, account));

  it('gets the faults of its account, at the login and with the token', async () => {
    const { account, mine, theirs } = await two();
    await sandbox.faults.arm('http-503', { account, times: 2 });
    expect([(await theirs.login()).status, (await theirs.ask('GET', '/instances')).status]).toEqual([
      200, 200,
    ]);
    expect([(await mine.login()).status, (await mine.ask('GET', '/instances')).status]).toEqual([503, 503]);
    expect((await mine.login()).status).toBe(200);
  });

  it('is found in the journal by its account', async () => {
    const { account, mine, theirs } = await two();
    await mine.ask('GET', '/instances');
    await theirs.ask('GET', '/instances');
    const entries = await sandbox.control.journal.entries({ account });
    expect(entries.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /v1/auth/token',
      'GET /v1/instances',
    ]);
  });

  it('belongs to the account whose name it logs in with', async () => {
    const { name, providers } = await sandbox.account();
    const body = JSON.stringify({ username: name, password: 'a wrong password' });
    const headers = { 'content-type': 'application/json' };
    await sandbox.fetch(`${providers['provider-b']?.baseUrl}/auth/token`, { method: 'POST', headers, body });
    expect(await sandbox.control.journal.entries({ account: name })).toMatchObject([{ status: 401 }]);
  });
});

describe('a user of the marketplace [sandbox-tenant-faults]', () => {
  const two = () => twoOf((account) => marketClient(sandbox, account));

  it('alone loses its machine to a fault of its account', async () => {
    const { account, mine, theirs } = await two();
    const [id, other] = [(await mine.deploy()).body.id, (await theirs.deploy()).body.id];
    await Promise.all([mine.until(id, 'running'), theirs.until(other, 'running')]);
    await sandbox.faults.arm('spot-reclaim', { account, times: 'sticky' });
    await mine.until(id, 'terminated-provider');
    expect(await theirs.statusOf(other)).toBe('running');
    sandbox.faults.clear({ account });
  });

  it.each([
    ['the platform', 'image-missing', {}],
    ['the boot', 'boot-fails', { times: 'sticky' }],
    ['a request to the provider', 'capacity-gone', { provider: 'b', times: 'sticky' }],
  ] as const)('alone is struck by a fault of %s from its first order on', async (_what, fault, options) => {
    const { account, mine, theirs } = await two();
    const armed = await sandbox.faults.arm(fault, { account, ...options });
    const other = (await theirs.deploy()).body.id;
    const { id } = (await mine.deploy()).body;
    await mine.until(id, 'failed');
    await theirs.until(other, 'running');
    expect(armed.hits).toBeGreaterThan(0);
    sandbox.faults.clear({ account });
  });

  it('alone waits for a transition of its account', async () => {
    const { account, mine, theirs } = await two();
    sandbox.transitions.set({ mode: 'manual', phase: 'boot', account });
    const [id, other] = [(await mine.deploy()).body.id, (await theirs.deploy()).body.id];
    await theirs.until(other, 'running');
    expect(await mine.statusOf(id)).toBe('deploying');
    expect(sandbox.transitions.finish({ account })).toBe(1);
    await mine.until(id, 'running');
    sandbox.transitions.clear();
  });

  it('is found in the journal by its account, also in what the marketplace sent for it', async () => {
    const { account, mine, theirs } = await two();
    const [id, other] = [(await mine.deploy()).body.id, (await theirs.deploy()).body.id];
    await Promise.all([mine.until(id, 'running'), theirs.until(other, 'running')]);
    const { journal } = sandbox.control;
    const creates = await journal.entries({ account, operation: 'createInstance' });
    expect(creates).toMatchObject([{ provider: 'provider-b', account, also_of: ['marketplace'] }]);
    const [{ resource } = {}] = creates;
    const reads = await journal.entries({ account, operation: 'getInstance' });
    expect(new Set(reads.map((entry) => entry.resource))).toEqual(new Set([resource]));
    const sent = await journal.entries({ account: 'marketplace', operation: 'createInstance' });
    expect(sent.map((entry) => entry.account)).toContain(account);
    // The client asked every 5 seconds, the marketplace more often.
    await journal.assert({ assert: 'polled_at_most_every', seconds: 5, where: { account } });
  });
});

it('eight at once, each with its own faults, through a token and through the marketplace [sandbox-eight-at-once]', async () => {
  const outcomes = [
    ['spot-reclaim', 'gone', 'terminated-provider'],
    ['guest-power-off', 'STOPPED', 'stopped'],
    ['machine-breaks', 'ERROR', 'failed'],
    [undefined, 'ONLINE', 'running'],
  ] as const;
  const tests = outcomes.flatMap(([fault, status, deploymentStatus]) => [
    async () => {
      const account = await sandbox.account();
      const client = await tokenClient(sandbox, account);
      const { id } = (await client.order()).body;
      await client.until(id, 'ONLINE');
      if (fault !== undefined) await sandbox.faults.arm(fault, { account: account.name });
      await client.until(id, status);
      return () => client.until(id, status, 0);
    },
    async () => {
      const account = await sandbox.account();
      const client = marketClient(sandbox, account);
      const { id } = (await client.deploy()).body;
      await client.until(id, 'running');
      if (fault !== undefined) await sandbox.faults.arm(fault, { account: account.name });
      await client.until(id, deploymentStatus);
      return () => client.until(id, deploymentStatus, 0);
    },
  ]);
  const ended = await Promise.all(tests.map((test) => test()));
  await sandbox.clock.advance(60_000);
  for (const isStillSo of ended) await isStillSo();
});

it('losses of many machines stop no sale, and each is a loss', async () => {
  const { account, mine, theirs } = await twoOf((each) => tokenClient(sandbox, each));
  const market = await sandbox.account();
  const tenant = marketClient(sandbox, market);
  const orders = await Promise.all(Array.from({ length: 4 }, async () => (await mine.order()).body.id));
  const deployed = await Promise.all(Array.from({ length: 4 }, async () => (await tenant.deploy()).body.id));
  for (const id of orders) await mine.until(id, 'ONLINE');
  for (const id of deployed) await tenant.until(id, 'running');
  await sandbox.faults.arm('machine-lost', { account, times: 'sticky' });
  await sandbox.faults.arm('machine-lost', { account: market.name, times: 'sticky' });
  for (const id of orders) await mine.until(id, 'gone');
  for (const id of deployed) await tenant.until(id, 'terminated-provider');
  expect((await theirs.order()).status).toBe(201);
  for (const { name } of [market, { name: account }]) sandbox.faults.clear({ account: name });
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

it('the journal of one account is cleared, also of what the marketplace sent for it', async () => {
  const { account, mine, theirs } = await twoOf((each) => marketClient(sandbox, each));
  const [id, other] = [(await mine.deploy()).body.id, (await theirs.deploy()).body.id];
  await Promise.all([mine.until(id, 'running'), theirs.until(other, 'running')]);
  const { journal } = sandbox.control;
  const before = await journal.entries();
  await journal.clear({ account });
  expect(await journal.entries({ account })).toEqual([]);
  const kept = before.filter((entry) => entry.account !== account);
  expect((await journal.entries()).map(({ number }) => number)).toEqual(kept.map(({ number }) => number));
});
