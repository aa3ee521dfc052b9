import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { Command } from 'commander';
import { setPassword } from '../orchestrator/operate/actions/accounts.ts';
import { printError } from '../runtime/print.ts';
import { withActions } from './action-commands.ts';
import { localActor } from './local-actor.ts';
import { onDatabase } from './orchestrator-database.ts';
import { type OutputFlag, printDone, withOutput } from './print-records.ts';

/** `berth accounts`: manages tenants, which cannot see each other's resources. */
export function accountsCommand(): Command {
  const accounts = new Command('accounts');
  withOutput(
    onDatabase(accounts.command('set-password <name>'), async (deps, name: string, flags: OutputFlag) => {
      const password = await readPassword();
      await setPassword.perform(deps, localActor(), { account: name, password });
      printDone(flags, { name }, `The password of account ${name} is set.`);
    }),
  ).description(
    'set the password for POST /auth/token, read from the terminal or from standard input; tokens bought with the old one end',
  );
  return withActions(accounts);
}

/** Reads one line of standard input. A terminal does not echo it. */
async function readPassword(): Promise<string> {
  const { stdin } = process;
  if (stdin.isTTY) printError('New password: ');
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: stdin, output: silent, terminal: stdin.isTTY === true });
  try {
    for await (const line of lines) return line;
    return '';
  } finally {
    lines.close();
    if (stdin.isTTY) printError('\n');
  }
}
