import { describe, expect, it, vi } from 'vitest';
import { benchOf, startBench } from './faults/bench.fixture.ts';
import type { Sandbox } from './sandbox.ts';

const MINUTE_S = 60;
const HOUR_S = 3_600;
const DAY_S = 86_400;
/** The provider's time to deploy. */
const BOOT_WINDOW_S = 10 * MINUTE_S;

/** Counts the timers that start while `work` runs: each call to a platform has one, for its deadline. */
async function timersDuring(sandbox: Sandbox, work: () => Promise<unknown>): Promise<number> {
  const timers = vi.spyOn(sandbox.clock, 'setTimer');
  try {
    await work();
    return timers.mock.calls.length;
  } finally {
    timers.mockRestore();
  }
}

/** Ways for the removal of a machine to be stuck, and their ends. */
const stuck = {
  'is held until it is finished': (sandbox: Sandbox) => {
    sandbox.transitions.set({ mode: 'manual', phase: 'destroy' });
    return async () => void sandbox.transitions.finish();
  },
  'is held for polls': (sandbox: Sandbox) => {
    sandbox.transitions.set({ mode: 'polls', polls: 1, phase: 'destroy' });
    return async (poll: () => Promise<unknown>) => void (await poll());
  },
  'is stuck by a fault': async (sandbox: Sandbox) => {
    const armed = await sandbox.faults.arm('destroy-stuck');
    return async () => armed.disarm();
  },
  'is stuck by a fault that ends by itself': async (sandbox: Sandbox) => {
    await sandbox.faults.arm('destroy-stuck', { for_ms: (DAY_S + HOUR_S) * 1_000 });
    return async () => sandbox.clock.advance(HOUR_S * 1_000);
  },
};

describe('a removal that', () => {
  it.each(Object.entries(stuck))(
    '%s is asked for once a skip, and continues at once',
    async (_name, begin) => {
      await using sandbox = await startBench();
      const { ask, make, pass, read, until } = await benchOf(sandbox);
      const ids = [await make('1'), await make('2'), await make('3')];
      await pass(HOUR_S);
      const idle = await timersDuring(sandbox, () => pass(DAY_S));

      const end = await begin(sandbox);
      for (const id of ids) await ask('DELETE', `/instances/${id}`);
      await pass(5 * MINUTE_S + 1);
      const held = await timersDuring(sandbox, () => pass(DAY_S));
      // One deadline of each call, and the next wait of the queue.
      expect(held - idle).toBeLessThan(4 * ids.length);

      for (const id of ids) {
        await end(() => read(id));
        await until(id, 'GONE', 10);
      }
    },
  );
});

it('a fault that is armed later affects a transition that is held', async () => {
  await using sandbox = await startBench();
  const { order, pass, read } = await benchOf(sandbox);
  sandbox.transitions.set({ mode: 'manual', phase: 'boot' });
  const { body } = await order('held');
  await pass(MINUTE_S);
  await sandbox.faults.arm('image-missing');
  await pass(2);
  expect((await read(body.id)).body.status).toBe('ERROR');
});

it('continues a transition that is finished while its step still waits for the platform', async () => {
  await using sandbox = await startBench();
  const { order, pass, until } = await benchOf(sandbox);
  await sandbox.faults.arm('platform-slow', { route: 'create', ms: 5_000 });
  sandbox.transitions.set({ mode: 'manual', phase: 'boot' });
  const { body } = await order('slow');
  await pass(2);
  expect(sandbox.transitions.finish({ instance: body.id })).toBe(1);
  await until(body.id, 'ONLINE', 15);
});

it('a boot that is held ends in ERROR at the end of its window, between two calls to the platform', async () => {
  await using sandbox = await startBench();
  const { order, pass, read } = await benchOf(sandbox);
  await sandbox.faults.arm('platform-call-lost', { route: 'create' });
  sandbox.transitions.set({ mode: 'manual', phase: 'boot' });
  const { body } = await order('never');
  await pass(BOOT_WINDOW_S - 1);
  expect((await read(body.id)).body.status).toBe('PROVISIONING');
  await pass(1);
  expect((await read(body.id)).body.status).toBe('ERROR');
});

it.each([
  ['http-500', { route: 'POST /volumes' }],
  ['stop-stuck', {}],
  ['stopped-reaped', {}],
  ['ssh-silent', {}],
] as const)('the armed fault %s costs nothing while it has no occasion', async (name, options) => {
  await using sandbox = await startBench();
  const { make, pass } = await benchOf(sandbox);
  await make();
  await sandbox.faults.arm(name, options);
  await pass(5 * MINUTE_S + 1);
  const owners = vi.spyOn(sandbox.provider('d'), 'resourceOf');
  // The day is skipped: each periodic task runs once.
  expect(await timersDuring(sandbox, () => pass(DAY_S))).toBeLessThan(100);
  expect(owners).not.toHaveBeenCalled();
});
