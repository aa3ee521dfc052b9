import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import type { Command } from 'commander';
import { Fatal } from '../ports/errors.ts';
import { printError } from '../runtime/print.ts';

export interface ConfirmFlags {
  yes?: true;
  dryRun?: true;
}

/** Adds the flags of a command that changes something. */
export function withConfirm(command: Command): Command {
  return command.option('--yes', 'do it without asking').option('--dry-run', 'only show what would be done');
}

/**
 * Shows the plan and asks, unless the flags answer. Returns whether to do it.
 * @throws {Fatal} if there is no terminal to ask on
 */
export async function isConfirmed(
  { yes, dryRun }: ConfirmFlags,
  showPlan: () => Promise<void> | void,
): Promise<boolean> {
  if (yes && dryRun) throw new Fatal('--yes and --dry-run exclude each other: give one of them.');
  if (yes) return true;
  await showPlan();
  if (dryRun) return false;
  if (process.stdin.isTTY !== true)
    throw new Fatal(
      'Nothing has changed: there is no terminal to ask on. Give --yes to do it, or --dry-run.',
    );
  if (/^y(es)?$/i.test((await askFor('Do it? [y/N] ')).trim())) return true;
  printError('Nothing has changed.\n');
  return false;
}

/** Reads one line of standard input. `isSecret`: a terminal does not echo it. */
export async function askFor(question: string, isSecret = false): Promise<string> {
  const { stdin } = process;
  const isTerminal = stdin.isTTY === true;
  if (isTerminal) printError(question);
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const hidden = isSecret ? { output: silent, terminal: isTerminal } : { terminal: false };
  const lines = createInterface({ input: stdin, ...hidden });
  try {
    for await (const line of lines) return line;
    return '';
  } finally {
    lines.close();
    if (isTerminal && isSecret) printError('\n');
  }
}
