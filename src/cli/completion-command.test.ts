import { expect, it } from 'vitest';
import { loadBerth } from '../../test/documents/command-line.ts';
import { runMain } from '../../test/support/processes/run-main.ts';
import { describeCompletion } from './completion.suite.ts';
import { toCompletionScript } from './completion-command.ts';

it.each(['bash', 'zsh'] as const)('berth completion %s prints the script of every command', async (shell) => {
  const { code, stdout, stderr } = await runMain(['completion', shell]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  expect(stdout).toBe(toCompletionScript(await loadBerth(), shell));
});

it('refuses another shell', async () => {
  const { code, stderr } = await runMain(['completion', 'fish']);
  expect([code, stderr]).toEqual([
    1,
    'berth: <shell> fish: give one of bash, zsh: see `berth completion --help`.\n',
  ]);
});

describeCompletion('bash');
