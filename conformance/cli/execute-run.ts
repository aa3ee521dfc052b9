import { randomBytes } from 'node:crypto';
import { hasConfigFault } from '../doctor/examine.ts';
import { reasonOf } from '../doctor/reason.ts';
import { whyNotAffordable } from '../plan/afford.ts';
import { LedgerError } from '../resources/ledger-error.ts';
import { type OpenLedgerFile, openLedgerFile } from '../resources/ledger-file.ts';
import { progress } from '../run/progress.ts';
import { run } from '../run/run.ts';
import type { TranscriptRecord } from '../transcript/records.ts';
import type { SuiteFault } from '../verdict/judge.ts';
import { EXIT } from '../verdict/outcome.ts';
import type { Transport } from '../wire/transport.ts';
import { CommandError } from './command-error.ts';
import { confirm } from './confirm.ts';
import { tellNotable } from './diagnoses.ts';
import { Interruption } from './interruption.ts';
import { tellLeftovers } from './leftovers.ts';
import { tellOpenLedgers } from './open-ledgers.ts';
import { Outputs } from './outputs.ts';
import type { CliParts } from './parts.ts';
import { lookAround, type Preparation, planOf } from './preparation.ts';
import { NAME } from './program.ts';
import type { RunCommandFlags } from './run-command.ts';
import { stateFolderOf } from './run-options.ts';
import { showReport } from './show-report.ts';
import { openTransport } from './target-options.ts';
import { tellFault } from './tell-fault.ts';

/** Looks at the set-up, asks, runs, judges and writes; answers with the exit code. Throws `CommandError`. */
export async function executeRun(
  preparation: Preparation,
  flags: RunCommandFlags,
  parts: CliParts,
): Promise<number> {
  const { terminal, env } = parts;
  using interruption = new Interruption(parts.signals, terminal);
  const outputs = new Outputs(flags);
  let transport: Transport | undefined;
  try {
    transport = openTransport(flags, parts);
    interruption.closeWhenAbandoned(transport);
    const folder = stateFolderOf(flags, env);
    tellOpenLedgers(folder, preparation.options.baseUrl, terminal);
    await makeSure(preparation, flags, parts, { transport, interruption, folder });
    return await conduct(preparation, flags, parts, { transport, interruption, folder, outputs });
  } catch (error) {
    outputs.discard();
    const { signal, fault } = interruption;
    if (!signal.aborted || fault !== undefined) throw fault ?? error;
    terminal.err('Nothing was bought.\n');
    return EXIT.incomplete;
  } finally {
    await transport?.close();
  }
}

interface Conditions {
  transport: Transport;
  interruption: Interruption;
  /** Of the ledgers. */
  folder: string;
}

/** Throws `CommandError` where the run is not to be made. Nothing has been bought then. */
async function makeSure(
  preparation: Preparation,
  flags: RunCommandFlags,
  parts: CliParts,
  { transport, interruption, folder }: Conditions,
): Promise<void> {
  const { signal } = interruption;
  const look = { transport, signal, stateFolder: folder, mayPost: true };
  const examined = await lookAround(preparation, parts, look);
  const found = [...preparation.notes, ...examined.diagnoses];
  tellNotable(found, parts.terminal);
  if (hasConfigFault(found))
    throw new CommandError('the run did not begin: see CONFIG above. It says nothing about the target');
  const plan = planOf(preparation, examined);
  const why = whyNotAffordable(plan, flags.acceptUnknownCost === true);
  if (why !== undefined) throw new CommandError(why);
  const { baseUrl } = preparation.options;
  if (flags.yes !== true && !(await confirm(plan, baseUrl, parts.terminal, signal)))
    throw new CommandError('the run did not begin, and nothing was bought', EXIT.incomplete);
}

/** From here on something may be bought: whatever happens, what is left is told, and exits with 5. */
async function conduct(
  { options, scenarios, requirements }: Preparation,
  flags: RunCommandFlags,
  parts: CliParts,
  { transport, interruption, folder, outputs }: Conditions & { outputs: Outputs },
): Promise<number> {
  const { terminal, clock, ssh } = parts;
  const runId = randomBytes(5).toString('hex');
  const ledgerFile = openLedger(folder, runId);
  interruption.notice = 'Interrupted: what the run made is destroyed now. Once more gives that up.';
  const told = progress({
    ...{ write: terminal.err, isTerminal: terminal.errIsTty, columns: terminal.width, clock },
  });
  let records: readonly TranscriptRecord[] = [];
  try {
    records = await run(
      options,
      {
        ...{ runId, transport, ssh, clock, ledgerFile, onEvent: told.onEvent },
        ...{ signal: interruption.signal, abandon: interruption.abandon },
        sink: (line) => outputs.transcript?.write(`${line}\n`),
      },
      scenarios,
    );
    told.stop();
    const isVerbose = flags.verbose === true;
    const exitCode = showReport({ records, requirements, outputs, terminal, isVerbose });
    if (exitCode === EXIT.mayBeRunning && flags.stateDir !== undefined)
      terminal.err(
        `The ledger is kept elsewhere: \`${NAME} sweep ${options.baseUrl} --state-dir ${folder}\`\n`,
      );
    return endOf(exitCode, interruption.fault, parts);
  } catch (error) {
    told.stop();
    outputs.keepTranscript();
    const cause = interruption.fault ?? error;
    const isOfTheSetUp = cause instanceof LedgerError;
    if (isOfTheSetUp) terminal.err(`${NAME}: ${cause.message}.\n`);
    else tellFault(cause, parts);
    const isLeft = tellLeftovers(ledgerFile.entries(), options.baseUrl, terminal);
    if (isLeft) return EXIT.mayBeRunning;
    return isOfTheSetUp ? EXIT.configuration : EXIT.suiteFault;
  } finally {
    ledgerFile.close();
  }
}

function endOf(exitCode: number, fault: SuiteFault | undefined, parts: CliParts): number {
  if (fault === undefined) return exitCode;
  tellFault(fault, parts);
  return exitCode === EXIT.mayBeRunning ? exitCode : EXIT.suiteFault;
}

function openLedger(folder: string, runId: string): OpenLedgerFile {
  try {
    return openLedgerFile(folder, runId);
  } catch (error) {
    const why = `the ledger cannot be kept in ${folder} (${reasonOf(error)})`;
    throw new CommandError(`${why}: name another folder with --state-dir`);
  }
}
