import type { Check } from '../checks/check.ts';
import { CHECKS } from '../checks/index.ts';
import type { Diagnosis } from '../doctor/diagnosis.ts';
import { type Examined, examine } from '../doctor/examine.ts';
import { type Plan, toPlan } from '../plan/plan.ts';
import { loadRequirements, type Requirements } from '../requirements.ts';
import type { RunOptions } from '../run/options.ts';
import { scenariosFor } from '../scenarios/index.ts';
import type { Scenario } from '../scenarios/scenario.ts';
import type { Transport } from '../wire/transport.ts';
import type { CliParts } from './parts.ts';
import { type RunFlags, toSettings } from './run-options.ts';
import { idsOf, selectChecks } from './select.ts';
import { findSecondKey, requireBaseUrl, requireSignIn, secondKeySource } from './target-options.ts';

/** What a run, a plan or a doctor is about, as far as the command line and this machine say it. */
export interface Preparation {
  options: RunOptions;
  requirements: Requirements;
  /** Those that take part. */
  checks: readonly Check[];
  scenarios: readonly Scenario[];
  notes: Diagnosis[];
}

/** Reads the command line. Throws `CommandError`; nothing has been sent then. */
export function prepareRun(
  typed: string,
  flags: RunFlags,
  commands: readonly string[],
  parts: CliParts,
): Preparation {
  const { baseUrl, notes } = requireBaseUrl(typed, commands);
  const settings = toSettings(flags);
  const requirements = loadRequirements();
  const ids = idsOf(flags.only);
  const only = ids === undefined ? undefined : selectChecks(ids, flags.level, requirements.rows, CHECKS);
  const { signIn, notes: ofSignIn } = requireSignIn(flags, parts);
  const second = findSecondKey(secondKeySource(flags, parts), parts);
  return {
    options: {
      ...{ ...signIn, baseUrl, level: flags.level, settings },
      acceptsUnknownCost: flags.acceptUnknownCost === true,
      ...(second.key === undefined ? {} : { secondApiKey: second.key }),
      ...(only === undefined ? {} : { only: only.map(({ id }) => id) }),
    },
    requirements,
    checks: only ?? CHECKS,
    scenarios: scenariosFor(flags.level, only),
    notes: [...notes, ...ofSignIn, ...second.diagnoses],
  };
}

export interface Look {
  transport: Transport;
  signal: AbortSignal;
  /** Absent where nothing is to be kept. */
  stateFolder?: string;
  mayPost: boolean;
}

/** Looks at the set-up and at what there is to buy. */
export function lookAround({ options }: Preparation, parts: CliParts, look: Look): Promise<Examined> {
  const { baseUrl, apiKey, login, level, settings } = options;
  return examine({
    ...{ ...look, baseUrl, apiKey, login, level, wanted: settings },
    timeoutMs: parts.probeTimeoutMs,
    wall: () => parts.clock.wall(),
  });
}

export function planOf({ options, scenarios, checks }: Preparation, { availability = [] }: Examined): Plan {
  return toPlan({ ...{ scenarios, checks, availability }, level: options.level, settings: options.settings });
}
