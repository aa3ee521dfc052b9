import { randomBytes } from 'node:crypto';
import { Command, InvalidArgumentError, Option } from 'commander';
import { transcriptDigest } from '../../certificate/digest.ts';
import { hasConfigFault } from '../../doctor/examine.ts';
import type { Plan } from '../../doctor/plan.ts';
import type { Transport } from '../../http/transport.ts';
import { plural } from '../../report/words.ts';
import { formatUsd } from '../../resources/budget.ts';
import { type Entry, isOpen } from '../../resources/ledger.ts';
import { LedgerError, type OpenLedgerFile, openLedgerFile } from '../../resources/ledger-file.ts';
import { progress } from '../../run/progress.ts';
import { run } from '../../run/run.ts';
import { systemErrorText } from '../../text/wording.ts';
import { Draws } from '../../transcript/draws.ts';
import type { TranscriptRecord } from '../../transcript/records.ts';
import type { SuiteFault } from '../../transcript/transcript.ts';
import { EXIT } from '../../verdict/outcome.ts';
import { firstFailure } from '../first-failure.ts';
import { Interruption } from '../interruption.ts';
import { reportLeftovers, reportOpenLedgers } from '../leftovers.ts';
import { type OutputFlags, Outputs, showReport, withOutputs } from '../outputs.ts';
import type { CliParts, Finish } from '../parts.ts';
import { diagnose, type Preparation, prepareRun, printNotable } from '../preparation.ts';
import { CommandError, NAME, reportSuiteFault } from '../program.ts';
import { restartBy } from '../restart-command.ts';
import { type RunFlags, stateFolderOf, withRunOptions, withStateFolder } from '../run-options.ts';
import { openTransport } from '../target-options.ts';
import type { Terminal } from '../terminal.ts';

export interface RunCommandFlags extends RunFlags, OutputFlags {
  transcript?: string;
  nonce?: string;
  yes?: true;
  stateDir?: string;
  verbose?: true;
  keepOnFailure?: true;
}

/** `berth conformance <base_url>`. */
export function runCommand(parts: CliParts, finish: Finish): Command {
  const command = new Command(NAME)
    .description('Tests whether a provider orchestrator, in any language, conforms to the contract.')
    .argument('<base_url>', 'the base URL of the API, such as https://orchestrator.example/v1');
  withPlain(withStateFolder(withOutputs(withRunOptions(command))))
    .option(
      '--transcript <file>',
      'write every request and answer (to FILE.partial until the end), for `judge`',
    )
    .option(
      '--nonce <text>',
      'a text from whoever will verify the report: it becomes part of the report, and is signed with it',
      toNonce,
    )
    .option('--yes', 'do not ask for confirmation before money is spent; without a terminal it never asks')
    .option(
      '--keep-on-failure',
      'stop at the first failure and destroy nothing; it costs money until `sweep`',
    )
    .option('--verbose', 'also list the checks that passed')
    .action(async (typed: string, flags: RunCommandFlags) => {
      const names = command.commands.map((inner) => inner.name());
      finish(await executeRun(prepareRun(typed, flags, names, parts), flags, parts));
    });
  return command;
}

/**
 * Checks the set-up, asks for confirmation, runs, judges and writes the report; returns the exit code. Throws
 * `CommandError`.
 */
export async function executeRun(
  preparation: Preparation,
  flags: RunCommandFlags,
  parts: CliParts,
): Promise<number> {
  const { terminal, env } = parts;
  const folder = stateFolderOf(flags, env);
  using interruption = new Interruption(parts.signals, terminal);
  const outputs = new Outputs(flags);
  let transport: Transport | undefined;
  try {
    transport = openTransport(flags, parts);
    interruption.closeWhenAbandoned(transport);
    reportOpenLedgers(folder, preparation.options.baseUrl, terminal);
    const plan = await checkBeforeRun(preparation, flags, parts, { transport, interruption, folder });
    return await runAndReport(preparation, flags, parts, {
      transport,
      interruption,
      folder,
      outputs,
      plannedMinutes: plan.minutes.typical,
    });
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

interface RunContext {
  transport: Transport;
  interruption: Interruption;
  /** The folder of the ledgers. */
  folder: string;
}

interface RunAndReportContext extends RunContext {
  outputs: Outputs;
  plannedMinutes: number;
}

/** Throws `CommandError` if the run must not start. Nothing has been bought then. */
async function checkBeforeRun(
  preparation: Preparation,
  flags: RunCommandFlags,
  parts: CliParts,
  { transport, interruption, folder }: RunContext,
): Promise<Plan> {
  const { signal } = interruption;
  const { diagnoses, plan } = await diagnose(preparation, parts, { transport, signal, stateFolder: folder });
  printNotable(diagnoses, parts.terminal);
  if (plan === undefined || hasConfigFault(diagnoses))
    throw new CommandError('the run did not start: see CONFIG above. This says nothing about the target');
  const { baseUrl } = preparation.options;
  if (flags.yes !== true && !(await confirm(plan, baseUrl, parts.terminal, signal)))
    throw new CommandError('the run did not start, and nothing was bought', EXIT.incomplete);
  return plan;
}

/** From here on resources may be created. Leftovers are always reported, with exit code 5. */
async function runAndReport(
  { options, scenarios, requirements }: Preparation,
  flags: RunCommandFlags,
  parts: CliParts,
  { transport, interruption, folder, outputs, plannedMinutes }: RunAndReportContext,
): Promise<number> {
  const { terminal, clock, ssh } = parts;
  const draws = new Draws(randomBytes(32).toString('hex'));
  const runId = draws.runId;
  const ledgerFile = openLedger(folder, runId);
  interruption.notice =
    'Interrupted: the resources of the run are being destroyed. Interrupt again to abandon that.';
  const progressReport = progress({
    write: terminal.err,
    isTerminal: terminal.errIsTty,
    columns: terminal.width,
    clock,
  });
  let records: readonly TranscriptRecord[] = [];
  const begunAt = clock.now();
  let failure: string | undefined;
  try {
    records = await run(
      { ...options, nonce: flags.nonce },
      {
        runId,
        draws,
        transport,
        ssh,
        clock,
        ledgerFile,
        onEvent: progressReport.onEvent,
        signal: interruption.signal,
        abandon: interruption.abandon,
        ...(flags.restartCommand !== undefined && { restartTarget: restartBy(flags.restartCommand) }),
        mayKeep: (seen) => {
          if (failure === undefined) {
            failure = firstFailure(seen, requirements, plannedMinutes - (clock.now() - begunAt) / 60_000);
            if (failure !== undefined) progressReport.onEvent({ event: 'failed', text: failure });
          }
          return failure !== undefined && flags.keepOnFailure === true;
        },
        sink: (line) => outputs.transcript?.write(`${line}\n`),
      },
      scenarios,
    );
    progressReport.stop();
    const isVerbose = flags.verbose === true;
    const exitCode = showReport({
      records,
      transcriptSha256: transcriptDigest(records),
      requirements,
      outputs,
      terminal,
      isVerbose,
    });
    if (flags.keepOnFailure === true) terminal.err(keptLine(ledgerFile.entries(), options.baseUrl));
    if (exitCode === EXIT.mayBeRunning && flags.stateDir !== undefined)
      terminal.err(
        `The ledger is in another folder, so run: \`${NAME} sweep ${options.baseUrl} --state-dir ${folder}\`\n`,
      );
    return exitCodeAfter(exitCode, interruption.fault, parts);
  } catch (error) {
    progressReport.stop();
    outputs.keepTranscript();
    const exitCode = reportFailure(interruption.fault ?? error, parts);
    const hasLeftovers = reportLeftovers(ledgerFile.entries(), options.baseUrl, terminal);
    return hasLeftovers ? EXIT.mayBeRunning : exitCode;
  } finally {
    ledgerFile.close();
  }
}

/** A line about kept resources, which cost money. */
function keptLine(entries: readonly Entry[], baseUrl: string): string {
  const open = entries.filter(isOpen);
  if (open.length === 0) return '';
  const usd = open.reduce((sum, { pricePerHour = 0 }) => sum + pricePerHour, 0);
  return `KEPT    ${plural(open.length, 'resource')}, for ${formatUsd(usd)} an hour until \`${NAME} sweep ${baseUrl}\` destroys ${open.length === 1 ? 'it' : 'them'}.\n`;
}

/** Reports why a run ended without a report. A ledger that cannot be written is a fault of the set-up. */
function reportFailure(cause: unknown, parts: CliParts): number {
  if (cause instanceof LedgerError) {
    parts.terminal.err(`${NAME}: ${cause.message}.\n`);
    return EXIT.configuration;
  }
  reportSuiteFault(cause, parts);
  return EXIT.suiteFault;
}

function exitCodeAfter(exitCode: number, fault: SuiteFault | undefined, parts: CliParts): number {
  if (fault === undefined) return exitCode;
  reportSuiteFault(fault, parts);
  return exitCode === EXIT.mayBeRunning ? exitCode : EXIT.suiteFault;
}

function openLedger(folder: string, runId: string): OpenLedgerFile {
  try {
    return openLedgerFile(folder, runId);
  } catch (error) {
    const why = `the ledger cannot be kept in ${folder} (${systemErrorText(error)})`;
    throw new CommandError(`${why}: name another folder with --state-dir`);
  }
}

/**
 * Asks for confirmation before money is spent. Without an interactive terminal it does not ask, and `--max-cost` is the
 * limit.
 */
async function confirm(
  { purchases, worst_case_usd, max_cost_usd, unpriced }: Plan,
  baseUrl: string,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<boolean> {
  if (purchases.length === 0 || !terminal.isInteractive) return true;
  const isAsked = purchases.some(({ offer }) => offer !== undefined);
  const usd = isAsked ? worst_case_usd : max_cost_usd;
  const more = isAsked && unpriced.instances > 0 ? ', plus an offer of unknown price' : '';
  const made = (type: 'instance' | 'volume'): string =>
    plural(purchases.filter((purchase) => purchase.type === type).length, type);
  const what = [made('instance'), made('volume')].filter((each) => !each.startsWith('0 ')).join(' and ');
  const question = `This run creates ${what} at ${baseUrl}, and may cost up to ${formatUsd(usd)}${more}. Continue? [y/N] `;
  return /^y(es)?$/i.test((await terminal.ask(question, signal)).trim());
}

const LONGEST_NONCE = 200;

function toNonce(text: string): string {
  if (text.isWellFormed() && text !== '' && text.length <= LONGEST_NONCE) return text;
  throw new InvalidArgumentError(`Give a text of 1 to ${LONGEST_NONCE} characters.`);
}

/** The options that say what a run sends, and when, which a plain run does not choose. */
const OF_USUAL_RUNS = [
  'only',
  'rerunFailed',
  'race',
  'observeS',
  'fast',
  'restartCommand',
  'exhaustive',
  'secondApiKeyFile',
  'otherAccountKeyFile',
  'keepOnFailure',
];

function withPlain(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--plain',
        'send what an ordinary marketplace sends, so that a target cannot recognise the suite; what no client sends is not tested',
      ).conflicts(OF_USUAL_RUNS),
    )
    .option(
      '--installation <id>',
      'with --plain: the eight hex digits in the names of your marketplace; default: drawn',
      installationOf,
    );
}

function installationOf(text: string): string {
  if (/^[0-9a-f]{8}$/.test(text)) return text;
  throw new InvalidArgumentError('Give eight hex digits, as they follow bm- in the names of the instances');
}
