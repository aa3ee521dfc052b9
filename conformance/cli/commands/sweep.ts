import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { Command } from 'commander';
import { suiteNames } from '../../http/identity.ts';
import type { Entry } from '../../resources/ledger.ts';
import { readStateFolder, type StateFolder, type StoredLedger } from '../../resources/ledger-file.ts';
import { type SweepParts, type Swept, sweep } from '../../resources/sweep.ts';
import { printable } from '../../text/printable.ts';
import { systemErrorText } from '../../text/wording.ts';
import { EXIT } from '../../verdict/outcome.ts';
import { Interruption } from '../interruption.ts';
import { leftoverLines, SHOWN_CHARS } from '../leftovers.ts';
import type { CliParts, Finish } from '../parts.ts';
import { CommandError, NAME } from '../program.ts';
import { type PatienceFlags, stateFolderOf, withPatience, withStateFolder } from '../run-options.ts';
import {
  openTransport,
  requireBaseUrl,
  requireSignIn,
  type TargetFlags,
  withTarget,
} from '../target-options.ts';

interface Flags extends TargetFlags, PatienceFlags {
  stateDir?: string;
  absent: string[];
  otherKey?: true;
}

/** `berth conformance sweep [base_url]`: finishes the clean-up of runs that were cut off. */
export function sweepCommand(parts: CliParts, finish: Finish): Command {
  const command = new Command('sweep')
    .description('destroy what earlier runs left behind, and nothing else')
    .argument(
      '[base_url]',
      'only runs of this target; required where runs of several targets left something behind',
    );
  return withStateFolder(withPatience(withTarget(command)))
    .option(
      '--absent <name>',
      'a resource that is not on the platform, as you have checked; may be repeated',
      (name: string, names: string[]) => [...names, name],
      [],
    )
    .option('--other-key', 'the key differs from that of the run, but belongs to the same account')
    .action(async (typed: string | undefined, flags: Flags) => {
      finish(await executeSweep(typed, flags, parts));
    });
}

async function executeSweep(typed: string | undefined, flags: Flags, parts: CliParts): Promise<number> {
  const { terminal, clock } = parts;
  const folder = stateFolderOf(flags, parts.env);
  if (flags.stateDir !== undefined && !existsSync(folder))
    throw new CommandError(`there is no folder ${folder}: name the --state-dir of the run to sweep`);
  const { open, unreadable } = readLedgers(folder);
  for (const { path, cause } of unreadable)
    terminal.out(
      `${path} cannot be read (${systemErrorText(cause)}), and the resources of its run MAY STILL BE RUNNING AND BILLING: look on the platform for ${suiteNames(basename(path, '.ndjson')).pattern} (after a run with --plain: for instances that nobody rents), destroy those, and then remove the file.\n`,
    );
  const atLeast = unreadable.length > 0 ? EXIT.mayBeRunning : EXIT.conformant;
  const ledgers = chooseLedgers(typed, open);
  if (ledgers.length === 0 && (open.length > 0 || unreadable.length === 0))
    return reportNothingToSweep(open, folder, terminal);
  if (ledgers.length === 0) return EXIT.mayBeRunning;
  const { signIn } = requireSignIn(flags, parts);
  using interruption = new Interruption(parts.signals, terminal);
  interruption.notice = 'Interrupted: you can run `sweep` again at any time.';
  const transport = openTransport(flags, parts);
  interruption.closeWhenAbandoned(transport);
  try {
    const exitCodes: number[] = [];
    for (const ledger of ledgers)
      exitCodes.push(
        await sweepOne(ledger, terminal, {
          ...signIn,
          transport,
          clock,
          signal: interruption.signal,
          absent: flags.absent,
          isOtherKeyAccepted: flags.otherKey === true,
          pollIntervalMs: flags.pollIntervalMs,
          patienceMs: flags.readyTimeoutS * 1000,
          onWait: onceEach((text) => terminal.err(`  waiting ${printable(text, SHOWN_CHARS)}\n`)),
        }),
      );
    if (interruption.fault !== undefined) throw interruption.fault;
    return Math.max(atLeast, ...exitCodes);
  } finally {
    await transport.close();
  }
}

/** Leaves out a text that is the same as the one before. */
function onceEach(write: (text: string) => void): (text: string) => void {
  let last: string | undefined;
  return (text) => {
    if (text !== last) write(text);
    last = text;
  };
}

/** Reports that no ledger was selected. That is a success only if none has open entries. */
function reportNothingToSweep(
  open: readonly StoredLedger[],
  folder: string,
  terminal: CliParts['terminal'],
): number {
  if (open.length > 0) {
    terminal.out(
      `Nothing was swept: in ${folder} only runs at ${targetsOf(open).join(', ')} left resources behind, which MAY STILL BE RUNNING AND BILLING. Name one of these targets.\n`,
    );
    return EXIT.mayBeRunning;
  }
  terminal.out(`Nothing to sweep: no run in ${folder} left anything behind.\n`);
  return EXIT.conformant;
}

function targetsOf(ledgers: readonly StoredLedger[]): string[] {
  return [...new Set(ledgers.map(({ baseUrl }) => baseUrl))];
}

/** An API key belongs to one target, so one sweep handles the runs of one target. Throws `CommandError`. */
function chooseLedgers(typed: string | undefined, all: StoredLedger[]): StoredLedger[] {
  if (typed !== undefined) {
    const { baseUrl } = requireBaseUrl(typed, []);
    return all.filter((ledger) => ledger.baseUrl === baseUrl);
  }
  const targets = targetsOf(all);
  if (targets.length > 1)
    throw new CommandError(
      `runs of several targets left something behind, and each target has its own key: name one of ${targets.join(', ')}`,
    );
  return all;
}

function readLedgers(folder: string): StateFolder {
  try {
    return readStateFolder(folder);
  } catch (error) {
    throw new CommandError(`the ledgers in ${folder} cannot be read (${systemErrorText(error)})`);
  }
}

async function sweepOne(
  ledger: StoredLedger,
  terminal: CliParts['terminal'],
  parts: SweepParts,
): Promise<number> {
  const { runId, startedAt, baseUrl, unreadable } = ledger;
  terminal.out(`Run ${runId} of ${startedAt} at ${baseUrl}\n`);
  if (unreadable.length > 0)
    terminal.out(
      `  NOTE: lines ${unreadable.join(', ')} of ${ledger.path} cannot be read; their resources are searched for by the run's name prefix\n`,
    );
  const swept = await trySweep(ledger, parts);
  if (swept.result === 'busy') {
    terminal.out(`  left alone: ${swept.why}\n`);
    return EXIT.incomplete;
  }
  const destroyed = swept.result === 'swept' ? swept.destroyed : [];
  for (const entry of destroyed) terminal.out(`  gone: ${described(entry)}\n`);
  if (swept.result === 'unreachable') terminal.out(`  ${swept.why}\n`);
  if (swept.result === 'swept' && swept.left.length === 0) {
    terminal.out(destroyed.length === 0 ? '  nothing of it existed any more\n' : '  all of it is gone\n');
    return EXIT.conformant;
  }
  terminal.out(leftoverLines(baseUrl, swept.left));
  return EXIT.mayBeRunning;
}

async function trySweep(ledger: StoredLedger, parts: SweepParts): Promise<Swept> {
  try {
    return await sweep(ledger, parts);
  } catch (error) {
    const left = ledger.entries.filter(({ state }) => state !== 'gone' && state !== 'refused');
    const why = parts.signal.aborted ? 'interrupted' : `${NAME} failed (${systemErrorText(error)})`;
    return { result: 'unreachable', why, left };
  }
}

function described({ type, name, id }: Entry): string {
  const known = id === undefined ? '' : `, id ${printable(id, SHOWN_CHARS)}`;
  return `${type} ${printable(name, SHOWN_CHARS)}${known}`;
}
