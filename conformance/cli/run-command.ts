import { Command } from 'commander';
import { executeRun } from './execute-run.ts';
import type { OutputFlags } from './outputs.ts';
import type { CliParts } from './parts.ts';
import { prepareRun } from './preparation.ts';
import { NAME } from './program.ts';
import { type RunFlags, withRunOptions, withStateFolder } from './run-options.ts';

export interface RunCommandFlags extends RunFlags, OutputFlags {
  yes?: true;
  transcript?: string;
  stateDir?: string;
  verbose?: true;
}

/** What a command is told to do with its exit code. */
export type Finish = (exitCode: number) => void;

/** `berth conformance <base_url>`. */
export function runCommand(parts: CliParts, finish: Finish): Command {
  const command = new Command(NAME)
    .description('Tests a provider orchestrator, in whatever language, against the contract.')
    .argument('<base_url>', 'where the contract is served, such as https://orchestrator.example/v1');
  withStateFolder(withOutputs(withRunOptions(command)))
    .option(
      '--transcript <file>',
      'write all that was sent and seen, to FILE.partial until the end; `judge` gives verdicts on it again',
    )
    .option('--yes', 'do not ask before money is spent; where there is no terminal nobody is asked')
    .option('--verbose', 'list what passed, too')
    .action(async (typed: string, flags: RunCommandFlags) => {
      const names = command.commands.map((inner) => inner.name());
      finish(await executeRun(prepareRun(typed, flags, names, parts), flags, parts));
    });
  return command;
}

/** The files that a report may be written to. */
export function withOutputs(command: Command): Command {
  return command
    .option('--json <file>', 'write the report as JSON')
    .option('--junit <file>', 'write the report as JUnit XML')
    .option('--html <file>', 'write the report as one HTML page');
}
