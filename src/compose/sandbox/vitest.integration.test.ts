import { describe, expect } from 'vitest';
import { marketClient, tokenClient } from '../../sandbox/isolation.fixture.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { sandboxTest } from './vitest.ts';

const test = sandboxTest({ providers: ['b'], marketplace: true });
const seen = new Set<unknown>();

for (const count of [1, 2])
  test(`gives test ${count} of a file the same sandbox, and an account of its own`, ({
    sandbox,
    sharedSandbox,
    account,
  }) => {
    seen.add(sharedSandbox).add(sandbox.providers);
    expect(seen).toEqual(new Set([sharedSandbox, sharedSandbox.providers]));
    expect(account.name).toBe(`account-${count}`);
    expect(account.marketplace?.baseUrl).toBe('http://sandbox.test/api');
  });

test('gives a test its own sandbox on request', async ({ sandbox, ownSandbox }) => {
  const before = sandbox.clock.now();
  await ownSandbox.clock.advance(60_000);
  expect(sandbox.clock.now()).toBe(before);
});

describe('what a test leaves ends with it [sandbox-test-ends]', () => {
  let left: { name: string; instance: string; deployment: string };

  test('a test with a machine, a deployment, faults and a frozen clock', async ({ sandbox, account }) => {
    const [client, market] = [await tokenClient(sandbox, account), marketClient(sandbox, account)];
    const [instance, deployment] = [(await client.order()).body.id, (await market.deploy()).body.id];
    await client.until(instance, 'ONLINE');
    await market.until(deployment, 'running');
    left = { name: account.name, instance, deployment };
    await sandbox.faults.arm('http-500', { times: 'sticky', must_strike: false });
    await sandbox.control.faults.arm('http-503', { account: account.name, must_strike: false });
    sandbox.transitions.set({ mode: 'manual' });
    sandbox.clock.freeze();
  });

  test('a test that resets the sandbox, with its account', async ({ ownSandbox }) => {
    await ownSandbox.account();
    await ownSandbox.control.reset();
  });

  test('the test after them', async ({ sandbox, account }) => {
    expect(sandbox.clock.isFrozen).toBe(false);
    expect(sandbox.faults.list()).toEqual([]);
    expect(sandbox.transitions.settings).toEqual([]);
    await sandbox.clock.advance(120_000);
    expect((await sandbox.control.dump()).providers['provider-b']?.instances).toEqual([]);
    const entries = await sandbox.control.journal.entries({ account: left.name });
    expect(entries.map(({ path }) => path)).toContain(`/v1/instances/${left.instance}`);
    expect((await marketClient(sandbox, account).ask('GET', '/deployments')).body).toEqual([]);
  });
});

describe('a fault that never struck fails the test that armed it [sandbox-must-strike]', () => {
  test.fails('armed in process', async ({ sandbox }) => {
    await sandbox.faults.arm('http-500');
  });

  test.fails('armed through the control API', async ({ sandbox }) => {
    await sandbox.control.faults.arm('http-500');
  });

  test.fails('and disarmed by the test itself', async ({ sandbox, account }) => {
    await sandbox.faults.arm('http-500', { account: account.name });
    sandbox.faults.clear();
  });

  test.fails('in a sandbox of its own', async ({ ownSandbox }) => {
    await ownSandbox.faults.arm('http-500');
  });

  test('unless it is left to chance or need not strike', async ({ sandbox }) => {
    await sandbox.faults.arm('http-500', { probability: 0.001 });
    await sandbox.faults.arm('http-500', { must_strike: false });
  });

  test('with the fault, its options and how often it could have struck', async ({ sharedSandbox }) => {
    const own = sharedSandbox.forTest();
    const account = await own.account();
    const client = await tokenClient(own, account);
    await own.faults.arm('http-500', { account: account.name, skip: 3 });
    await client.ask('GET', '/instances');
    await expect(own.close()).rejects.toThrow(
      'The test armed faults that never struck (must_strike: false allows that):\n' +
        `  http-500 {"account":"${account.name}","skip":3,"probability":1,"done":false}, after 1 occasions`,
    );
  });

  test('and is reported by the control API when its account ends', async ({ sharedSandbox }) => {
    const { control } = sharedSandbox;
    const { name } = await control.createAccount();
    await control.faults.arm('http-500', { account: name, must_strike: true });
    await control.faults.arm('http-503', { account: name });
    expect(await control.endAccount(name)).toMatchObject({ unstruck: [{ fault: 'http-500', hits: 0 }] });
    expect(await control.faults.list()).toEqual([]);
    await expect(control.endAccount('nobody')).rejects.toMatchObject({ status: 404 });
  });
});

/** Time in which something happens every millisecond: an advance by hours takes minutes. */
function busyFor(sandbox: Sandbox, signal: AbortSignal): void {
  const tick = (): void => void (signal.aborted || sandbox.clock.setTimer(1, tick));
  tick();
}

describe('a test that times out holds up no other [sandbox-timed-out]', () => {
  const late = { timeout: 300 };
  const ends: unknown[] = [];
  /** On a busy machine, a test may time out before it begins its work. */
  let begun = 0;
  const noting = (work: Promise<unknown>) => {
    begun++;
    return work.catch((error: Error) => ends.push(error.name));
  };

  async function advanceFar(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
    busyFor(sandbox, signal);
    await noting(sandbox.clock.advance(3_600_000));
    await noting(sandbox.clock.advance(1));
  }

  test.fails('in an advance', late, ({ sandbox, signal }) => advanceFar(sandbox, signal));

  test.fails('in an advance of its own sandbox', { timeout: 2_000 }, ({ ownSandbox, signal }) =>
    advanceFar(ownSandbox, signal),
  );

  test.fails('in advanceUntilIdle', late, async ({ sandbox, account, signal }) => {
    // Work that is due within ten minutes is waited for.
    sandbox.transitions.set({ mode: 'timed', ms: 540_000, phase: 'boot', account: account.name });
    await (await tokenClient(sandbox, account)).order();
    busyFor(sandbox, signal);
    await noting(sandbox.clock.advanceUntilIdle());
  });

  test.fails('in an advance through the control API', late, async ({ sandbox, signal }) => {
    busyFor(sandbox, signal);
    await noting(sandbox.control.clock.advance('1h'));
  });

  test.fails('in a request that is never answered', late, async ({ sandbox, account }) => {
    const client = await tokenClient(sandbox, account);
    await sandbox.faults.arm('no-answer', { account: account.name });
    await noting(client.ask('GET', '/instances'));
  });

  test.fails('in a request while it has the clock frozen', late, async ({ sandbox, account }) => {
    const client = await tokenClient(sandbox, account);
    await sandbox.faults.arm('latency', { account: account.name });
    sandbox.clock.freeze();
    await noting(client.ask('GET', '/instances'));
  });

  test('and what it still tries is refused', { timeout: 5_000 }, async ({ sandbox, account }) => {
    const begunAt = sandbox.clock.now();
    const client = await tokenClient(sandbox, account);
    expect((await client.ask('GET', '/instances')).status).toBe(200);
    await sandbox.clock.advance(1_000);
    expect(sandbox.clock.now()).toBe(begunAt + 1_000);
    expect(begun).toBeGreaterThan(0);
    expect(ends).toHaveLength(begun);
  });
});

describe('tests at once in one sandbox [sandbox-concurrent]', () => {
  const faults = ['spot-reclaim', 'guest-power-off', 'machine-breaks', 'machine-lost'] as const;
  for (const [index, fault] of faults.entries()) {
    test.concurrent(`${fault}, with a token`, async ({ sandbox, account }) => {
      const client = await tokenClient(sandbox, account);
      const { id } = (await client.order()).body;
      await client.until(id, 'ONLINE');
      await sandbox.faults.arm(fault, { account: account.name });
      await client.until(id, ['gone', 'STOPPED', 'ERROR', 'gone'][index] ?? '');
    });
    test.concurrent(`${fault}, through the marketplace`, async ({ sandbox, account }) => {
      const client = marketClient(sandbox, account);
      const { id } = (await client.deploy()).body;
      await client.until(id, 'running');
      await sandbox.faults.arm(fault, { account: account.name });
      const ends = ['terminated-provider', 'stopped', 'failed', 'terminated-provider'];
      await client.until(id, ends[index] ?? '');
    });
  }
});
