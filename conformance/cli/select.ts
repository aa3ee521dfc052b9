import type { Check } from '../checks/check.ts';
import { nearest } from '../doctor/nearest.ts';
import type { Requirement } from '../requirements.ts';
import { includes, type Level } from '../transcript/records.ts';
import { CommandError } from './command-error.ts';

/** The ids in `--only ID,…`, or undefined where it is not given. */
export function idsOf(only: string | undefined): string[] | undefined {
  if (only === undefined) return undefined;
  const ids = only
    .split(',')
    .map((id) => id.trim().toUpperCase())
    .filter((id) => id !== '');
  if (ids.length === 0) throw new CommandError('--only names no id: `berth conformance list` shows them');
  return ids;
}

/**
 * The checks that `--only` names, by the id of a requirement or by what several begin with (`INS-404`). Throws
 * `CommandError` where an id is unknown, or names nothing that a run of this level can look at.
 */
export function selectChecks(
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
      `--only ${ids.join(',')} needs --level ${needed.level}, and this is ${level}: nothing would be looked at`,
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
    throw new CommandError(`--only ${id} cannot be looked at from outside: ${first.excluded}`);
  const meant = nearest(id, [...requirements.map((each) => each.id), ...checks.map((check) => check.id)]);
  const hint = meant === undefined ? '`berth conformance list` shows all ids' : `did you mean ${meant}?`;
  throw new CommandError(`--only ${id}: there is no such id: ${hint}`);
}
