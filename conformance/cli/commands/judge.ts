import { readFileSync, statSync } from 'node:fs';
import { Command } from 'commander';
import { sha256 } from '../../certificate/digest.ts';
import { suiteVersion } from '../../contract/package.ts';
import { loadRequirements } from '../../contract/requirements.ts';
import { systemErrorText } from '../../text/wording.ts';
import type { TranscriptRecord } from '../../transcript/records.ts';
import { readTranscript, TranscriptError } from '../../transcript/transcript.ts';
import { type OutputFlags, Outputs, showReport, withOutputs } from '../outputs.ts';
import type { CliParts, Finish } from '../parts.ts';
import { CommandError } from '../program.ts';

/** `berth conformance judge <transcript>`: judges the transcript of an earlier run, offline and free. */
export function judgeCommand({ terminal }: CliParts, finish: Finish): Command {
  const command = new Command('judge')
    .description('judge a transcript again: offline, and free')
    .argument('<transcript>', 'a file that --transcript wrote');
  return withOutputs(command)
    .option('--verbose', 'also list the checks that passed')
    .action((path: string, flags: OutputFlags & { verbose?: true }) => {
      const { records, digest } = readTranscriptFile(path);
      const requirements = loadRequirements();
      const [run] = records;
      if (run?.kind === 'run' && run.requirements !== requirements.digest)
        terminal.err(
          'NOTE    The run was made with another version of the requirements than the one used now.\n',
        );
      const outputs = new Outputs(flags);
      try {
        finish(
          showReport({
            records,
            transcriptSha256: digest,
            requirements,
            outputs,
            terminal,
            isVerbose: flags.verbose === true,
            judgedBy: suiteVersion,
          }),
        );
      } catch (error) {
        outputs.discard();
        throw error;
      }
    });
}

/** Node.js cannot hold a longer string. */
const MAX_BYTES = 500_000_000;

/** Reads a transcript file. Throws `CommandError`. */
function readTranscriptFile(path: string): { records: TranscriptRecord[]; digest: string } {
  const text = readTranscriptText(path);
  try {
    return { records: readTranscript(text), digest: sha256(text) };
  } catch (error) {
    if (error instanceof TranscriptError)
      throw new CommandError(`${path} cannot be judged: ${error.message}`);
    throw error;
  }
}

/** The text of a transcript file. Throws `CommandError`. */
export function readTranscriptText(path: string): string {
  try {
    const stat = statSync(path);
    if (stat.isDirectory()) throw new CommandError(`${path} is a folder: name the file of --transcript`);
    if (stat.size > MAX_BYTES) throw new CommandError(`${path} is larger than ${MAX_BYTES} bytes`);
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(`${path} cannot be read (${systemErrorText(error)})`);
  }
}
