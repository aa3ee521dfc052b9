import type { Check } from '../checks/check.ts';
import { includes, type Level } from '../transcript/records.ts';
import { boot } from './boot.ts';
import { catalog } from './catalog.ts';
import { companion } from './companion.ts';
import { create } from './create.ts';
import { destroy } from './destroy.ts';
import { earlyDelete } from './early-delete.ts';
import { list, listByRegion } from './list.ts';
import { online } from './online.ts';
import { race } from './race.ts';
import { refusals } from './refusals.ts';
import type { Scenario } from './scenario.ts';
import { secondKey } from './second-key.ts';
import { soldOut } from './sold-out.ts';
import { start } from './start.ts';
import { stop } from './stop.ts';
import { token } from './token.ts';
import { unauthenticated } from './unauthenticated.ts';
import { unknown } from './unknown.ts';
import { volumes } from './volumes.ts';

/**
 * Every scenario, in the order in which they run: what costs nothing first; what needs the instance ONLINE between
 * `online` and `stop`; `destroy` after all that needs it; `unauthenticated` last, since what bans an address after many
 * bad credentials would be a failure of all that follows.
 */
export const SCENARIOS: readonly Scenario[] = [
  token,
  catalog,
  list,
  unknown,
  refusals,
  soldOut,
  create,
  boot,
  online,
  listByRegion,
  secondKey,
  volumes,
  companion,
  stop,
  start,
  earlyDelete,
  race,
  destroy,
  unauthenticated,
];

/** The scenarios of a run: those of its level, or those that the given checks need with all that these build on. */
export function scenariosFor(level: Level, only: readonly Check[] | undefined): Scenario[] {
  const ofLevel = SCENARIOS.filter((scenario) => includes(level, scenario.level));
  if (only === undefined) return ofLevel;
  const needed = new Set<string>();
  const need = (id: string): void => {
    if (needed.has(id)) return;
    needed.add(id);
    for (const other of SCENARIOS.find((scenario) => scenario.id === id)?.after ?? []) need(other);
  };
  for (const check of only) for (const id of check.scenarios) need(id);
  return ofLevel.filter(({ id }) => needed.has(id));
}
