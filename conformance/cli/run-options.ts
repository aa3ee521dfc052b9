import { type Command, InvalidArgumentError, Option } from 'commander';
import { defaultStateFolder } from '../resources/ledger-file.ts';
import type { RunOptions } from '../run/options.ts';
import { OBSERVED_MS } from '../scenarios/instances/observe.ts';
import { LEVELS, type Level } from '../transcript/records.ts';
import { CommandError } from './program.ts';
import { type TargetFlags, withTarget } from './target-options.ts';

const DEFAULT_MINUTES: Readonly<Record<Level, number>> = { 'read-only': 10, lifecycle: 60, full: 90 };
/** How much longer a plain run may take: a machine is rented for at least 20 minutes. */
const PLAIN_MINUTES = 30;
const DEFAULT_POLL_INTERVAL_MS = 10_000;
const DEFAULT_READY_TIMEOUT_S = 600;

/** The options of a run, which `doctor` shares. */
export interface RunFlags extends TargetFlags {
  level: Level;
  maxCost: number;
  maxMinutes?: number;
  pollIntervalMs: number;
  readyTimeoutS: number;
  only?: string;
  rerunFailed?: string;
  offer?: string;
  region?: string;
  race?: { offer: string; units: number };
  observeS: number;
  secondApiKeyFile?: string;
  otherAccountKeyFile?: string;
  exhaustive?: true;
  acceptUnknownCost?: true;
  allowPrivate?: true;
  restartCommand?: string;
  plain?: true;
  installation?: string;
}

export function withRunOptions(command: Command): Command {
  withTarget(command)
    .addOption(
      new Option('--level <level>', 'read-only: free; lifecycle: one cheapest instance; full: everything')
        .choices(LEVELS)
        .default('lifecycle'),
    )
    .option(
      '--max-cost <usd>',
      'the maximum cost of the run, in USD',
      numberIn({ unit: 'USD', min: 0, max: 1_000_000 }),
      1,
    )
    .option(
      '--max-minutes <minutes>',
      `the time after which the run stops and cleans up; default ${LEVELS.map((level) => DEFAULT_MINUTES[level]).join(', ')} by level`,
      numberIn({ unit: 'minutes', min: 1, max: 10_080 }),
    )
    .option('--only <ids>', 'only these checks, e.g. INS-404-001,SSH; see `list`')
    .option(
      '--rerun-failed <report>',
      'only what failed, warned or was not tested in an earlier --json report',
    )
    .option('--offer <id>', 'the offer to buy; default: the cheapest available one')
    .option('--region <region>', 'the region to buy it in')
    .option(
      '--race <offer=units>',
      'at level full: an offer and its total units in its region; the run requests one more',
      raceOf,
    )
    .option(
      '--observe-s <seconds>',
      'how long to observe an instance while it is ONLINE; with less than the default SSH-LIVE-001 is not tested',
      numberIn({ unit: 'seconds', min: 0, max: 86_400 }),
      OBSERVED_MS / 1000,
    )
    .option(
      '--second-api-key-file <file>',
      'a file with another key of the same account; default: BERTH_SECOND_API_KEY',
    )
    .option(
      '--other-account-key-file <file>',
      'a file with a key of another account, to which the instances must be 404; default: BERTH_OTHER_ACCOUNT_KEY',
    )
    .option(
      '--restart-command <command>',
      'a shell command that restarts the target; it is run once, while an instance of the run exists',
    )
    .option(
      '--exhaustive',
      `send every create that must be refused; default: stop after two of a kind were accepted, since the rest would buy`,
    )
    .option(
      '--accept-unknown-cost',
      'allow an offer without a usable price, for which --max-cost cannot hold',
    )
    .option(
      '--allow-private',
      'log in to machines at private addresses behind a public base URL; off, so that a target cannot direct the suite into your network',
    );
  command.addOption(
    new Option(
      '--fast',
      'a first look: a poll each second, and a short observation, after which SSH-LIVE-001 is not tested',
    ).implies({ pollIntervalMs: 1000, observeS: 30 }),
  );
  return withPatience(command);
}

export interface PatienceFlags {
  pollIntervalMs: number;
  readyTimeoutS: number;
}

/** Adds the options for poll interval and timeout. They never change a verdict. */
export function withPatience(command: Command): Command {
  return command
    .option(
      '--poll-interval-ms <ms>',
      'how often an instance is polled',
      numberIn({ unit: 'milliseconds', min: 10, max: 600_000, isWhole: true }),
      DEFAULT_POLL_INTERVAL_MS,
    )
    .option(
      '--ready-timeout-s <seconds>',
      'how long to wait for a machine; never changes a verdict',
      numberIn({ unit: 'seconds', min: 1, max: 86_400 }),
      DEFAULT_READY_TIMEOUT_S,
    );
}

export function withStateFolder(command: Command): Command {
  return command.option('--state-dir <folder>', 'the folder of the ledgers, which record what runs bought');
}

export function stateFolderOf(
  { stateDir }: { stateDir?: string },
  env: Readonly<Record<string, string | undefined>>,
): string {
  return stateDir ?? defaultStateFolder(env);
}

/** Converts the flags to the settings of a run. Throws `CommandError` if they contradict each other. */
export function toSettings(flags: RunFlags): RunOptions['settings'] {
  const { level, maxCost, maxMinutes, pollIntervalMs, readyTimeoutS, offer, region, race } = flags;
  if (race !== undefined && level !== 'full')
    throw new CommandError(`--race needs --level full, and this is ${level}`);
  if (flags.restartCommand !== undefined && level === 'read-only')
    throw new CommandError('--restart-command needs --level lifecycle or full, and this is read-only');
  if (flags.plain === true && level === 'full')
    throw new CommandError('--plain has the levels read-only and lifecycle, and this is full');
  if (flags.installation !== undefined && flags.plain !== true)
    throw new CommandError('--installation is part of the names of a run with --plain: add --plain');
  return {
    pollIntervalMs,
    readyTimeoutMs: readyTimeoutS * 1000,
    observeMs: flags.observeS * 1000,
    maxCostUsd: maxCost,
    maxMinutes: maxMinutes ?? DEFAULT_MINUTES[level] + (flags.plain === true ? PLAIN_MINUTES : 0),
    ...(offer !== undefined && { offer }),
    ...(region !== undefined && { region }),
    ...(race !== undefined && { race }),
    ...(flags.allowPrivate === true && { allowPrivate: true }),
    ...(flags.restartCommand !== undefined && { restarts: true as const }),
    ...(flags.exhaustive === true && { exhaustive: true }),
    ...(flags.plain === true && { plain: true }),
    ...(flags.installation !== undefined && { installation: flags.installation }),
  };
}

export interface NumberRange {
  /** The unit, e.g. `seconds`. */
  unit: string;
  min: number;
  max: number;
  isWhole?: boolean;
}

/** Parses a numeric option. The error names the unit and the range. */
export function numberIn({ unit, min, max, isWhole = false }: NumberRange): (text: string) => number {
  return (text) => {
    const value = /^\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : Number.NaN;
    if (value >= min && value <= max && (!isWhole || Number.isInteger(value))) return value;
    throw new InvalidArgumentError(
      `Give ${unit}, as a ${isWhole ? 'whole ' : ''}number from ${min} to ${max}`,
    );
  };
}

/** `OFFER=UNITS`. */
function raceOf(text: string): { offer: string; units: number } {
  const [, offer, digits = ''] = /^(.+)=(\d{1,3})$/.exec(text.trim()) ?? [];
  const units = Number(digits);
  if (offer !== undefined && units >= 1 && units <= 100) return { offer, units };
  throw new InvalidArgumentError(
    'Give OFFER=UNITS: the id of an offer, and how many units of it there are (1 to 100)',
  );
}

/** `HOST:PORT`; default port 22. */
export function hostAndPort(text: string): { host: string; port: number } {
  const [, bracketed, plain, digits = '22'] =
    /^(?:\[([^\]]+)\]|([^:\s]+))(?::(\d{1,5}))?$/.exec(text.trim()) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host !== undefined && port >= 1 && port <= 65_535) return { host, port };
  throw new InvalidArgumentError('Give HOST:PORT, such as 203.0.113.7:22');
}
