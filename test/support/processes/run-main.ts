import { Readable } from 'node:stream';
import { vi } from 'vitest';
import { main } from '../../../src/berth.ts';

export interface CommandResult {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs a command line in this process, which is quicker than one of its own. One at a time. */
export function runMain(
  args: readonly string[],
  input = '',
  terminal: { isTTY?: true } = {},
): Promise<CommandResult> {
  return runCommand(() => main(['node', 'berth', ...args]), input, terminal);
}

/** Runs `command` in this process, and captures what it writes. */
export async function runCommand(
  command: () => Promise<unknown>,
  input = '',
  terminal: { isTTY?: true } = {},
): Promise<CommandResult> {
  const written = { stdout: '', stderr: '' };
  const capture = (name: 'stdout' | 'stderr') =>
    vi.spyOn(process[name], 'write').mockImplementation((text) => {
      written[name] += String(text);
      return true;
    });
  const spies = [capture('stdout'), capture('stderr')];
  const stdin = vi.spyOn(process, 'stdin', 'get');
  stdin.mockReturnValue(Object.assign(Readable.from([input]), terminal) as typeof process.stdin);
  try {
    await command();
    return { code: Number(process.exitCode ?? 0), ...written };
  } finally {
    process.exitCode = undefined;
    for (const spy of [...spies, stdin]) spy.mockRestore();
  }
}
