import { Command } from 'commander';
import { onOrchestrator, withActions } from '../action-commands.ts';
import type { Context } from '../context/contexts.ts';
import { withOutput } from '../print-records.ts';
import { createMachine, withCreateFlags } from './create-command.ts';
import { logIn, printConsole } from './login-commands.ts';
import type { Machines } from './machine.ts';
import { operatorMachines } from './operator-machines.ts';
import { withTenant } from './tenant.ts';
import { tenantCommands } from './tenant-commands.ts';

/** `berth instances`: makes, lists and uses instances, with the key of an operator or of an account. */
export function instancesCommand(): Command {
  const instances = new Command('instances');
  onMachines(withCreateFlags(instances.command('create')), (machines, flags) =>
    createMachine(machines, flags as never),
  );
  onMachines(
    instances
      .command('ssh <instance> [command...]')
      .description("log in with OpenSSH's ssh, or run a command there after --")
      .option('-i, --identity <file>', 'the private key; default: as ssh chooses'),
    (machines, given, words, flags) =>
      logIn(machines, given as string, words as string[], flags as { identity?: string }),
  );
  onMachines(
    withOutput(instances.command('console <instance>')).description(
      "print what is stored of the guest's serial log, for operators: the last lines of a machine that failed",
    ),
    (machines, given, flags) => printConsole(machines, given as string, flags as object),
  );
  return withActions(instances, tenantCommands);
}

function onMachines(
  command: Command,
  body: (machines: Machines, ...args: unknown[]) => Promise<void>,
): Command {
  return onOrchestrator(
    command,
    (target, ...args) => body(operatorMachines(target), ...args),
    (context: Context, ...args: unknown[]) => withTenant(context, (machines) => body(machines, ...args)),
  );
}
