import { type Command, CommanderError } from 'commander';
import { explainCommand, listCommand } from './cli/commands/catalogue.ts';
import { compareCommand, redactCommand, verifyCommand } from './cli/commands/certificate.ts';
import { doctorCommand } from './cli/commands/doctor.ts';
import { judgeCommand } from './cli/commands/judge.ts';
import { monitorCommand } from './cli/commands/monitor.ts';
import { runCommand } from './cli/commands/run.ts';
import { sweepCommand } from './cli/commands/sweep.ts';
import { watchCommand } from './cli/commands/watch.ts';
import { type CliParts, systemParts } from './cli/parts.ts';
import { CommandError, explainMistakes, NAME, reportSuiteFault } from './cli/program.ts';
import { suiteVersion } from './contract/package.ts';
import { EXIT } from './verdict/outcome.ts';

/** Runs `berth conformance …` with the arguments after it. Returns the exit code, and never throws. */
export async function conformance(args: readonly string[], given: Partial<CliParts> = {}): Promise<number> {
  const parts = { ...systemParts(), ...given };
  let exitCode: number = EXIT.conformant;
  const program = createProgram(parts, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.conformant : EXIT.configuration;
    if (error instanceof CommandError) {
      parts.terminal.err(`${NAME}: ${error.message}${error.message.endsWith('?') ? '' : '.'}\n`);
      return error.exitCode;
    }
    reportSuiteFault(error, parts);
    return EXIT.suiteFault;
  }
}

/** Returns all commands of the suite for their descriptions, not to be run. */
export function suiteCommand(): Command {
  return createProgram(systemParts(), () => undefined).name('conformance');
}

function createProgram(parts: CliParts, finish: (exitCode: number) => void): Command {
  const program = runCommand(parts, finish)
    .version(suiteVersion, '-V, --version', 'print the version of the suite')
    .enablePositionalOptions();
  program
    .addCommand(doctorCommand(parts, finish))
    .addCommand(sweepCommand(parts, finish))
    .addCommand(judgeCommand(parts, finish))
    .addCommand(watchCommand(parts, finish))
    .addCommand(monitorCommand(parts, finish))
    .addCommand(compareCommand(parts, finish))
    .addCommand(verifyCommand(parts, finish))
    .addCommand(redactCommand(parts))
    .addCommand(explainCommand(parts))
    .addCommand(listCommand(parts))
    .hook('preSubcommand', (outer, inner) => {
      const misplaced = outer.options.find(
        (option) => outer.getOptionValueSource(option.attributeName()) === 'cli',
      );
      if (misplaced !== undefined)
        throw new CommandError(`write ${misplaced.long} after \`${inner.name()}\`, to which it belongs`);
    });
  explainMistakes(program, parts.terminal);
  return program;
}
