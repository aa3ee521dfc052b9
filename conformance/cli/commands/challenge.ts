import { Command, InvalidArgumentError, Option } from 'commander';
import { issueChallenge } from '../../certificate/challenge.ts';
import { LEVELS, type Level } from '../../transcript/records.ts';
import { orCommandError } from '../keys.ts';
import { OutputFile } from '../output-file.ts';
import type { CliParts } from '../parts.ts';
import { NAME } from '../program.ts';
import { readTextFile } from '../report-file.ts';
import { requireBaseUrl } from '../target-options.ts';

const DEFAULT_HOURS = 24;
const MOST_HOURS = 24 * 31;

interface ChallengeCommandFlags {
  key: string;
  level: Level;
  baseUrl?: string;
  validHours: number;
  out: string;
}

/** `berth conformance challenge`: issues a challenge, which a run answers with `--challenge`. */
export function challengeCommand({ terminal, clock }: CliParts): Command {
  return new Command('challenge')
    .description('issue a challenge: a signed nonce, from which a run draws its names, order and moments')
    .requiredOption('--key <key.pem>', 'the Ed25519 private key that signs it')
    .addOption(new Option('--level <level>', 'the level of the run').choices(LEVELS).makeOptionMandatory())
    .option('--base-url <url>', 'the target; default: any')
    .option('--valid-hours <hours>', 'the run must end within this time', hoursOf, DEFAULT_HOURS)
    .requiredOption('--out <file>', 'where to write it')
    .action(({ key, level, baseUrl, validHours, out }: ChallengeCommandFlags) => {
      const target = baseUrl === undefined ? undefined : requireBaseUrl(baseUrl, []).baseUrl;
      const pem = readTextFile(key);
      const challenge = orCommandError(() =>
        issueChallenge({ level, baseUrl: target, validHours, wall: clock.wall() }, pem),
      );
      new OutputFile('--out', out).complete(`${JSON.stringify(challenge, null, 2)}\n`);
      terminal.err(
        `A target that has ${out} can draw the run's names and order: keep it secret until your own run has ended.\nRun: \`${NAME} ${target ?? '<base_url>'} --level ${level} --challenge ${out}\`, before ${challenge.expires_at}.\n`,
      );
    });
}

function hoursOf(text: string): number {
  const hours = /^\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : Number.NaN;
  if (hours > 0 && hours <= MOST_HOURS) return hours;
  throw new InvalidArgumentError(`Give hours, as a number above 0 and up to ${MOST_HOURS}`);
}
