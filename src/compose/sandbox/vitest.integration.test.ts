import { describe, expect } from 'vitest';
import { marketClient, tokenClient } from '../../sandbox/isolation.fixture.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { createSandbox } from './sandbox.ts';
import { sandboxTest } from './vitest.ts';

const test = sandboxTest({ providers: ['b'], marketplace: true });
const seen: Sandbox[] = [];

describe('each test has a sandbox of its own, which ends with it [sandbox-test-ends]', () => {
  test('a test with a machine, a deployment, faults and a frozen clock', async ({ sandbox }) => {
    const [client, market] = [
      await tokenClient(sandbox, sandbox.defaultAccount),
      marketClient(sandbox, sandbox.defaultAccount),
    ];
    const [instance, deployment] = [(await client.order()).body.id, (await market.deploy()).body.id];
    await client.until(instance, 'ONLINE');
    await market.until(deployment, 'running');
    await sandbox.faults.arm('http-500', { times: 'sticky', must_trigger: false });
    sandbox.transitions.set({ mode: 'manual' });
    sandbox.clock.freeze();
    seen.push(sandbox);
  });

  test('the test after it', async ({ sandbox }) => {
    const [before] = seen;
    expect(before).not.toBe(sandbox);
    expect(sandbox.clock.isFrozen).toBe(false);
    expect(sandbox.faults.list()).toEqual([]);
    expect(sandbox.provider('b').platform.machines.all()).toEqual([]);
    expect(await sandbox.control.journal.entries()).toEqual([]);
    expect((await marketClient(sandbox, sandbox.defaultAccount).ask('GET', '/deployments')).body).toEqual([]);
    await expect(before?.fetch('/api/deployments')).rejects.toThrow('The sandbox is closed.');
  });

  test.concurrent('tests at once have their own time, one', ({ sandbox }) => ownTime(sandbox, 60_000));
  test.concurrent('tests at once have their own time, two', ({ sandbox }) => ownTime(sandbox, 90_000));
});

async function ownTime(sandbox: Sandbox, ms: number): Promise<void> {
  const before = sandbox.clock.now();
  await sandbox.clock.advance(ms);
  expect(sandbox.clock.now()).toBe(before + ms);
}

describe('a fault that never triggered fails the test that armed it [sandbox-must-trigger]', () => {
  test.fails('armed in process', async ({ sandbox }) => {
    await sandbox.faults.arm('http-500');
  });

  test.fails('armed through the control API', async ({ sandbox }) => {
    await sandbox.control.faults.arm('http-500');
  });

  test.fails('and disarmed by the test itself', async ({ sandbox }) => {
    await sandbox.faults.arm('http-500');
    sandbox.faults.clear();
  });

  test('unless it is left to chance or need not trigger', async ({ sandbox }) => {
    await sandbox.faults.arm('http-500', { probability: 0.001 });
    await sandbox.faults.arm('http-500', { must_trigger: false });
  });

  test('with the fault, its options and how often it could have triggered', async () => {
    const own = await createSandbox({ providers: ['b'], must_trigger: true });
    const client = await tokenClient(own, own.defaultAccount);
    await own.faults.arm('http-500', { skip: 3 });
    await client.ask('GET', '/instances');
    await expect(own.close()).rejects.toThrow(
      'The test armed faults that never triggered (must_trigger: false allows that):\n' +
        '  http-500 {"skip":3,"probability":1,"done":false}, after 1 occasions',
    );
    await own.close();
  });
});

/** Time in which so much happens each millisecond that no machine gets through ten minutes of it within a test. */
function busyFor(sandbox: Sandbox, signal: AbortSignal): void {
  const tick = (): void => void (signal.aborted || sandbox.clock.setTimer(1, tick));
  for (let count = 0; count < 50; count++) tick();
}

describe('what a test waits for breaks off when it times out [sandbox-timed-out]', () => {
  const late = { timeout: 500 };
  const ends: unknown[] = [];
  /** On a busy machine, a test may time out before it begins its work. */
  let begun = 0;
  const noting = (work: Promise<unknown>) => {
    begun++;
    return work.catch((error: Error) => ends.push(error.name));
  };

  test.fails('in an advance', late, async ({ sandbox, signal }) => {
    busyFor(sandbox, signal);
    await noting(sandbox.clock.advance(3_600_000));
    await noting(sandbox.clock.advance(1));
  });

  test.fails('in advanceUntilIdle', late, async ({ sandbox, signal }) => {
    // Work that is due within ten minutes is waited for.
    sandbox.transitions.set({ mode: 'timed', ms: 540_000, phase: 'boot' });
    await (await tokenClient(sandbox, sandbox.defaultAccount)).order();
    busyFor(sandbox, signal);
    await noting(sandbox.clock.advanceUntilIdle());
  });

  test.fails('in an advance through the control API', late, async ({ sandbox, signal }) => {
    busyFor(sandbox, signal);
    await noting(sandbox.control.clock.advance('1h'));
  });

  test.fails('in a request that waits for a busy clock', late, async ({ sandbox, signal }) => {
    const client = await tokenClient(sandbox, sandbox.defaultAccount);
    await sandbox.faults.arm('latency', { ms: 590_000 });
    busyFor(sandbox, signal);
    await noting(client.ask('GET', '/instances'));
  });

  test.fails('in a request while it has the clock frozen', late, async ({ sandbox }) => {
    const client = await tokenClient(sandbox, sandbox.defaultAccount);
    await sandbox.faults.arm('latency');
    sandbox.clock.freeze();
    await noting(client.ask('GET', '/instances'));
  });

  test('and no other test waits for it', { timeout: 10_000 }, async ({ sandbox }) => {
    await ownTime(sandbox, 1_000);
    expect(begun).toBeGreaterThan(0);
    await expect.poll(() => ends.length).toBeGreaterThanOrEqual(begun);
  });
});
