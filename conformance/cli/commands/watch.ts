import { statSync } from 'node:fs';
import { Command } from 'commander';
import type { Transport } from '../../http/transport.ts';
import { EXIT } from '../../verdict/outcome.ts';
import { Interruption } from '../interruption.ts';
import { withOutputs } from '../outputs.ts';
import type { CliParts, Finish } from '../parts.ts';
import { prepareRun } from '../preparation.ts';
import { CommandError, NAME } from '../program.ts';
import { withRunOptions, withStateFolder } from '../run-options.ts';
import { openTransport } from '../target-options.ts';
import { executeRun, type RunCommandFlags } from './run.ts';

const CHECK_EVERY_MS = 1000;
const PROBE_TIMEOUT_MS = 5000;
/** Headers in which servers name their build. */
const BUILD_HEADERS = ['x-build-id', 'x-build', 'x-version', 'x-revision', 'server', 'etag'];

interface WatchFlags extends RunCommandFlags {
  file?: string[];
}

/** `berth conformance watch <base_url>`: runs again whenever the target's build or a file changes. */
export function watchCommand(parts: CliParts, finish: Finish): Command {
  const command = new Command('watch')
    .description('run again whenever a file changes or the target is another build; ends with Ctrl-C')
    .argument('<base_url>', 'the base URL of the API');
  return withStateFolder(withOutputs(withRunOptions(command)))
    .option('--file <path...>', 'files whose change starts a run, e.g. the program of the target')
    .option('--yes', 'do not ask for confirmation before money is spent')
    .action(async (typed: string, flags: WatchFlags) => {
      if (flags.only === undefined && flags.rerunFailed === undefined)
        throw new CommandError('`watch` needs --only or --rerun-failed: it runs again and again');
      finish(await watch(typed, flags, parts));
    });
}

/** Returns the exit code of the last run when it is interrupted between two runs. */
async function watch(typed: string, flags: WatchFlags, parts: CliParts): Promise<number> {
  for (;;) {
    // Taken before the run, so that a change during it is not missed.
    const before = await fingerprint(typed, flags, parts);
    const exitCode = await runOnce(typed, flags, parts);
    if (exitCode === EXIT.mayBeRunning) return exitCode;
    parts.terminal.err('Waiting for a change of the target or of a --file; Ctrl-C ends it.\n');
    if (!(await hasChanged(before, typed, flags, parts))) return exitCode;
  }
}

/** A target that is down is waited for: it may be in the middle of a restart. */
async function runOnce(typed: string, flags: WatchFlags, parts: CliParts): Promise<number> {
  try {
    return await executeRun(prepareRun(typed, flags, [], parts), flags, parts);
  } catch (error) {
    const isDown = (await fingerprint(typed, flags, parts)).startsWith(AWAY);
    if (!(error instanceof CommandError) || !isDown) throw error;
    parts.terminal.err(`${NAME}: ${error.message}.\n`);
    return error.exitCode;
  }
}

/** Waits for a change. False if it is interrupted. */
async function hasChanged(
  before: string,
  typed: string,
  flags: WatchFlags,
  parts: CliParts,
): Promise<boolean> {
  using interruption = new Interruption(parts.signals, parts.terminal);
  const { signal } = interruption;
  try {
    for (;;) {
      await parts.clock.sleep(CHECK_EVERY_MS, signal);
      const now = await fingerprint(typed, flags, parts);
      if (now !== before && !now.startsWith(AWAY)) return true;
    }
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}

const AWAY = 'away';

/** A text that identifies the target's build and the state of the files. */
async function fingerprint(typed: string, flags: WatchFlags, parts: CliParts): Promise<string> {
  const files = (flags.file ?? []).map((path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0);
  const { options } = prepareRun(typed, flags, [], parts);
  const transport = openTransport(flags, parts);
  try {
    return `${await buildOf(options.baseUrl, transport)} ${files.join(' ')}`;
  } finally {
    await transport.close();
  }
}

async function buildOf(baseUrl: string, transport: Transport): Promise<string> {
  // Sent without a credential: the headers of the 401 suffice.
  const request = {
    method: 'GET',
    url: `${baseUrl}/configurations`,
    headers: { accept: 'application/json' },
  };
  const outcome = await transport.send(request, { timeoutMs: PROBE_TIMEOUT_MS, maxBodyBytes: 1024 * 1024 });
  if ('failure' in outcome) return AWAY;
  return BUILD_HEADERS.map((name) => outcome.headers[name] ?? '').join(' ');
}
