import { Command } from 'commander';
import { loadRequirements } from '../requirements.ts';
import { type OutputFlags, Outputs } from './outputs.ts';
import type { CliParts } from './parts.ts';
import { readTranscriptFile } from './read-transcript-file.ts';
import { type Finish, withOutputs } from './run-command.ts';
import { showReport } from './show-report.ts';

/** `berth conformance judge <transcript>`: verdicts on what an earlier run saw, offline and free. */
export function judgeCommand({ terminal }: CliParts, finish: Finish): Command {
  const command = new Command('judge')
    .description('give verdicts on a transcript again: offline, and free')
    .argument('<transcript>', 'the file of --transcript');
  return withOutputs(command)
    .option('--verbose', 'list what passed, too')
    .action((path: string, flags: OutputFlags & { verbose?: true }) => {
      const records = readTranscriptFile(path);
      const requirements = loadRequirements();
      const [run] = records;
      if (run?.kind === 'run' && run.requirements !== requirements.digest)
        terminal.err(
          'NOTE    The run was made with another set of requirements than the one by which it is judged now.\n',
        );
      const outputs = new Outputs(flags);
      try {
        finish(showReport({ records, requirements, outputs, terminal, isVerbose: flags.verbose === true }));
      } catch (error) {
        outputs.discard();
        throw error;
      }
    });
}
