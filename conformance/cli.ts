import { type Command, CommanderError } from 'commander';
import { explainCommand, listCommand } from './cli/catalogue-commands.ts';
import { CommandError } from './cli/command-error.ts';
import { doctorCommand } from './cli/doctor-command.ts';
import { judgeCommand } from './cli/judge-command.ts';
import { type CliParts, systemParts } from './cli/parts.ts';
import { planCommand } from './cli/plan-command.ts';
import { explainMistakes, NAME } from './cli/program.ts';
import { runCommand } from './cli/run-command.ts';
import { sweepCommand } from './cli/sweep-command.ts';
import { tellFault } from './cli/tell-fault.ts';
import { EXIT } from './verdict/outcome.ts';
import { suiteVersion } from './version.ts';

/** Runs `berth conformance …`; `args` are what follows that. Answers with the exit code, and throws nothing. */
export async function conformance(args: readonly string[], parts: CliParts = systemParts()): Promise<number> {
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
    tellFault(error, parts);
    return EXIT.suiteFault;
  }
}

function createProgram(parts: CliParts, finish: (exitCode: number) => void): Command {
  const program = runCommand(parts, finish)
    .version(suiteVersion, '-V, --version', 'print the version of the suite')
    .enablePositionalOptions();
  program
    .addCommand(planCommand(parts, finish))
    .addCommand(doctorCommand(parts, finish))
    .addCommand(sweepCommand(parts, finish))
    .addCommand(judgeCommand(parts, finish))
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
