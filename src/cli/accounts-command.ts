import { Command } from 'commander';
import { setPassword } from '../orchestrator/operate/actions/accounts.ts';
import { withActions } from './action-commands.ts';
import { askFor } from './confirm.ts';
import { localActor } from './local-actor.ts';
import { onDatabase } from './orchestrator-database.ts';
import { type OutputFlag, printDone, withOutput } from './print-records.ts';

/** `berth accounts`: manages tenants, which cannot see each other's resources. */
export function accountsCommand(): Command {
  const accounts = new Command('accounts');
  withOutput(
    onDatabase(accounts.command('set-password <name>'), async (deps, name: string, flags: OutputFlag) => {
      const password = await askFor('New password: ', true);
      await setPassword.perform(deps, localActor(), { account: name, password });
      printDone(flags, { name }, `The password of account ${name} is set.`);
    }),
  ).description(
    'set the password for POST /auth/token, read from the terminal or from standard input; tokens bought with the old one end',
  );
  return withActions(accounts);
}
