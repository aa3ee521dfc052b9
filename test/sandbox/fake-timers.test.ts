import { afterEach, expect, it, vi } from 'vitest';
import { sandboxTest } from '../../src/compose/sandbox/vitest.ts';
import { runMachine } from './run-machine.ts';

afterEach(() => vi.useRealTimers());

it('a sandbox works while Vitest’s timers are fake [sandbox-fake-timers]', async () => {
  vi.useFakeTimers();
  for (const clock of ['virtual', 'real'] as const) expect(await runMachine({ clock })).toBe('gone');
  expect(await runMachine({ ssh: true })).toBe('gone');
});

sandboxTest()('its fixtures work while Vitest’s timers are fake', async ({ sandbox }) => {
  vi.useFakeTimers({ now: 0 });
  const { baseUrl, apiKey } = sandbox.provider('a');
  const headers = { authorization: `Bearer ${apiKey}` };
  expect((await sandbox.fetch(`${baseUrl}/availability`, { headers })).status).toBe(200);
  await sandbox.clock.advance(60_000);
});
