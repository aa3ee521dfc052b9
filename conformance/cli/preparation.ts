import type { Check } from '../checks/check.ts';
import { CHECKS } from '../checks/index.ts';
import { loadRequirements, type Requirement, type Requirements } from '../contract/requirements.ts';
import { type Diagnosis, toLines } from '../doctor/diagnosis.ts';
import { type Examined, examine, hasConfigFault } from '../doctor/examine.ts';
import { costOf, type Plan, toPlan } from '../doctor/plan.ts';
import type { Transport } from '../http/transport.ts';
import type { Report } from '../report/report.ts';
import type { RunOptions } from '../run/options.ts';
import { scenariosFor } from '../scenarios/index.ts';
import type { Scenario } from '../scenarios/scenario.ts';
import { closestMatch } from '../text/wording.ts';
import { includes, type Level } from '../transcript/records.ts';
import type { Verdict } from '../verdict/judge.ts';
import type { CliParts } from './parts.ts';
import { CommandError } from './program.ts';
import { readReportFile } from './report-file.ts';
import { type RunFlags, toSettings } from './run-options.ts';
import {
  findKey,
  otherAccountSource,
  requireBaseUrl,
  requireSignIn,
  secondKeySource,
} from './target-options.ts';
import type { Terminal } from './terminal.ts';

/** The command line of a run or a doctor, resolved. */
export interface Preparation {
  options: RunOptions;
  requirements: Requirements;
  /** The selected checks. */
  checks: readonly Check[];
  scenarios: readonly Scenario[];
  notes: Diagnosis[];
}

/** Resolves the command line. Throws `CommandError`. Sends nothing. */
export function prepareRun(
  typed: string,
  flags: RunFlags,
  commands: readonly string[],
  parts: CliParts,
): Preparation {
  const { baseUrl, notes } = requireBaseUrl(typed, commands);
  const settings = toSettings(flags);
  const requirements = loadRequirements();
  const ids = idsToRun(flags);
  const only = ids === undefined ? undefined : selectChecks(ids, flags.level, requirements.rows, CHECKS);
  const { signIn, notes: ofSignIn } = requireSignIn(flags, parts);
  const second = findKey('second api key', secondKeySource(flags, parts), parts);
  const other = findKey('other account key', otherAccountSource(flags, parts), parts);
  return {
    options: {
      ...signIn,
      baseUrl,
      level: flags.level,
      settings,
      acceptsUnknownCost: flags.acceptUnknownCost === true,
      ...(second.key !== undefined && { secondApiKey: second.key }),
      ...(other.key !== undefined && { otherAccountKey: other.key }),
      ...(only !== undefined && { only: only.map(({ id }) => id) }),
    },
    requirements,
    checks: only ?? CHECKS,
    scenarios: scenariosFor(flags.level, only, settings),
    notes: [...notes, ...ofSignIn, ...second.diagnoses, ...other.diagnoses],
  };
}

export interface DiagnoseOptions {
  transport: Transport;
  signal: AbortSignal;
  stateFolder: string;
}

export interface Diagnosed {
  diagnoses: Diagnosis[];
  /** What a run would do. Absent if the target cannot be asked what it sells. */
  plan?: Plan;
}

/** Checks the set-up, and plans the run by what can be bought. Sends nothing before a plain run, which that would give away. */
export async function diagnose(
  { options, notes, scenarios, checks }: Preparation,
  parts: CliParts,
  diagnoseOptions: DiagnoseOptions,
): Promise<Diagnosed> {
  const { baseUrl, apiKey, login, level, settings } = options;
  const { diagnoses, configurations, availability }: Examined =
    settings.plain === true
      ? { diagnoses: [], configurations: [], availability: undefined }
      : await examine({
          ...diagnoseOptions,
          baseUrl,
          apiKey,
          login,
          level,
          wanted: settings,
          timeoutMs: parts.probeTimeoutMs,
          wall: () => parts.clock.wall(),
        });
  const found = [...notes, ...diagnoses];
  if (hasConfigFault(found)) return { diagnoses: found };
  const plan = toPlan({
    scenarios,
    checks,
    availability: availability ?? [],
    configurations,
    level,
    settings,
  });
  return { diagnoses: [...found, ...costOf(plan, options.acceptsUnknownCost === true)], plan };
}

function idsToRun({ only, rerunFailed }: RunFlags): string[] | undefined {
  if (rerunFailed === undefined) return idsOf(only);
  if (only !== undefined) throw new CommandError('--only and --rerun-failed both say what to run: give one');
  return failedIn(readReportFile(rerunFailed), rerunFailed);
}

const MENDED: readonly string[] = ['fail', 'warn', 'not_tested'] satisfies readonly Verdict[];

function failedIn({ checks }: Report, path: string): string[] {
  const ids = checks.filter(({ verdict }) => MENDED.includes(verdict)).map(({ id }) => id);
  if (ids.length === 0) throw new CommandError(`in ${path} nothing failed, and nothing was left untested`);
  return ids;
}

/** The ids in `--only ID,…`, or undefined if it is not given. */
function idsOf(only: string | undefined): string[] | undefined {
  if (only === undefined) return undefined;
  const ids = only
    .split(',')
    .map((id) => id.trim().toUpperCase())
    .filter((id) => id !== '');
  if (ids.length === 0) throw new CommandError('--only names no id: `berth conformance list` shows them');
  return ids;
}

/**
 * The checks of `--only`, by requirement id or prefix (`INS-404`). Throws `CommandError` if an id is unknown, or no
 * named check can run at this level.
 */
function selectChecks(
  ids: readonly string[],
  level: Level,
  requirements: readonly Requirement[],
  checks: readonly Check[],
): Check[] {
  const selected = new Set(ids.flatMap((id) => checksOf(id, requirements, checks)));
  const possible = [...selected].filter((check) => includes(level, check.level));
  const [needed] = selected;
  if (possible.length === 0 && needed !== undefined)
    throw new CommandError(
      `--only ${ids.join(',')} needs --level ${needed.level}, and this is ${level}: no check would run`,
    );
  return [...selected];
}

function checksOf(id: string, requirements: readonly Requirement[], checks: readonly Check[]): Check[] {
  const named = requirements.filter(
    (requirement) => requirement.id === id || requirement.id.startsWith(`${id}-`),
  );
  const own = new Set([...named.flatMap((requirement) => requirement.checks ?? []), id]);
  const found = checks.filter((check) => own.has(check.id));
  if (found.length > 0) return found;
  const [first] = named;
  if (first?.excluded !== undefined)
    throw new CommandError(`--only ${id} cannot be tested from outside: ${first.excluded}`);
  const meant = closestMatch(id, [
    ...requirements.map((each) => each.id),
    ...checks.map((check) => check.id),
  ]);
  const hint = meant === undefined ? '`berth conformance list` shows all ids' : `did you mean ${meant}?`;
  throw new CommandError(`--only ${id}: there is no such id: ${hint}`);
}

/** Prints notes, and problems that prevent a run. */
export function printNotable(diagnoses: readonly Diagnosis[], terminal: Terminal): void {
  terminal.err(toLines(diagnoses.filter(({ state }) => state !== 'ok')));
}
