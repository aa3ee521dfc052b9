import { Command, CommanderError } from 'commander';
import { commandsOf } from './cli/commands.ts';
import { createProgram, loadCommands, printFailure } from './cli/program.ts';
import type { ServePorts } from './compose/serve/orchestrator.ts';
import { packageVersion } from './config/package-root.ts';
import { withoutEchoes } from './runtime/signals.ts';

/** Runs the command line. A failure is a sentence on standard error and exit code 1. */
export async function main(argv: readonly string[], ports: ServePorts = {}): Promise<void> {
  const args = argv.slice(2);
  const called = calledCommand(args);
  if (called === 'conformance' && !args[0]?.startsWith('-')) {
    // A separate program, which parses its own arguments.
    const { conformance } = await import('../conformance/cli.ts');
    const asked = args[0] === 'help' ? [...args.slice(2), '--help'] : args.slice(1);
    process.exitCode = await conformance(asked, { signals: withoutEchoes(process) });
    return;
  }
  const commands = commandsOf((name) => argv.includes(name), ports);
  const suite = new Command('conformance').description('test a provider orchestrator, in whatever language');
  const program = createProgram(
    [...(await loadCommands(commands, (name) => name === called)), suite],
    packageVersion(),
  );
  try {
    await program.parseAsync(argv);
  } catch (error) {
    if (error instanceof CommanderError) {
      process.exitCode = error.exitCode;
      return;
    }
    printFailure(error);
    process.exitCode = 1;
  }
}

/** The command that is run, or for which `help` is asked. No option of `berth` itself takes a value. */
export function calledCommand(args: readonly string[]): string | undefined {
  const [first, second] = args.filter((arg) => !arg.startsWith('-'));
  return first === 'help' ? second : first;
}
