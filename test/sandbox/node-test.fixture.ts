import assert from 'node:assert';
import { mock, test } from 'node:test';
import { createSandbox } from '../../src/compose/sandbox/sandbox.ts';
import { runMachine } from './run-machine.ts';

// Run by node-test.long.test.ts with `node --test`.

test('fake timers', async () => {
  mock.timers.enable();
  assert.equal(await runMachine({}), 'gone');
  assert.equal(await runMachine({ clock: 'real' }), 'gone');
  mock.timers.reset();
});

test('times out in an advance', { timeout: 200 }, async ({ signal }) => {
  await using sandbox = await createSandbox({ signal });
  const tick = (): void => void (signal.aborted || sandbox.clock.setTimer(1, tick));
  tick();
  await sandbox.clock.advance(3_600_000);
});

test('comes after it', { timeout: 5_000 }, async ({ signal }) => {
  await using sandbox = await createSandbox({ signal });
  await sandbox.clock.advance(1_000);
});

test('fails where a fault never triggered', async ({ signal }) => {
  const sandbox = await createSandbox({ signal, must_trigger: true });
  await sandbox.faults.arm('http-500');
  await assert.rejects(sandbox.close(), /never triggered/);
});
