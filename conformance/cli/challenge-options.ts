import { closeSync, existsSync, openSync } from 'node:fs';
import type { Command } from 'commander';
import { type ReadChallenge, readChallenge, refuseOtherRun } from '../certificate/challenge.ts';
import { runIdOf } from '../certificate/redraw.ts';
import { ledgerPath, makeFolder } from '../resources/ledger-file.ts';
import type { RunOptions } from '../run/options.ts';
import { orCommandError, publicKeyOf } from './keys.ts';
import type { CliParts } from './parts.ts';
import { CommandError, refuseWithout } from './program.ts';
import { readTextFile } from './report-file.ts';

const MS_PER_MINUTE = 60_000;

export interface ChallengeFlags {
  transcript?: string;
  challenge?: string;
  challengeKey?: string;
}

export function withChallenge(command: Command): Command {
  return command
    .option('--challenge <file>', 'run for this challenge of a marketplace; each can be used once')
    .option('--challenge-key <public.pem>', 'the key with which the challenge must be signed');
}

/** The challenge of the flags, if there is one. `folder` has the ledgers. Throws `CommandError` if this run cannot answer it. */
export function challengeOf(
  flags: ChallengeFlags,
  { level, baseUrl, settings: { maxMinutes } }: Pick<RunOptions, 'level' | 'baseUrl' | 'settings'>,
  { clock, terminal }: Pick<CliParts, 'clock' | 'terminal'>,
  folder: string,
): ReadChallenge | undefined {
  if (flags.challenge === undefined) {
    refuseWithout('--challenge', { '--challenge-key': flags.challengeKey });
    return undefined;
  }
  if (flags.transcript === undefined)
    throw new CommandError('--challenge needs --transcript, by which `verify` checks the answer');
  const text = readTextFile(flags.challenge);
  return orCommandError(() => {
    const read = readChallenge(text, publicKeyOf(flags.challengeKey));
    refuseOtherRun(read.challenge, { level, baseUrl, wall: clock.wall() });
    const minutes = Math.floor((Date.parse(read.challenge.expires_at) - clock.wall()) / MS_PER_MINUTE);
    if (minutes < maxMinutes)
      terminal.err(
        `NOTE    The challenge expires in ${minutes} minutes, and the run may take ${maxMinutes} (--max-minutes): \`verify\` refuses a run that ends later.\n`,
      );
    const runId = runIdOf(read.draws);
    if (existsSync(ledgerPath(folder, runId))) throw usedBefore(runId);
    return read;
  });
}

/** Creates the ledger of the run. Throws `CommandError` if there is one: each challenge can be used once. */
export function takeChallenge(folder: string, runId: string): void {
  try {
    makeFolder(folder);
    closeSync(openSync(ledgerPath(folder, runId), 'ax', 0o600));
  } catch (error) {
    // Any other problem is found when the ledger is opened.
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') throw usedBefore(runId);
  }
}

function usedBefore(runId: string): CommandError {
  return new CommandError(`the challenge was used before, by run ${runId}: ask for another`);
}
