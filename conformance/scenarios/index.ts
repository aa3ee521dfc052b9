import { includes, type Level, type RunSettings } from '../transcript/records.ts';
import { otherAccount } from './access/other-account.ts';
import { secondKey } from './access/second-key.ts';
import { token } from './access/token.ts';
import { unauthenticated } from './access/unauthenticated.ts';
import { alone, POSTPONABLE } from './alone.ts';
import { race, raceCreate, raceOnline } from './capacity/race.ts';
import { soldOut } from './capacity/sold-out.ts';
import { catalog } from './catalog/catalog.ts';
import { unknown } from './conventions/unknown.ts';
import { boot, create } from './instances/create.ts';
import { destroy, earlyDelete } from './instances/destroy.ts';
import { elsewhere, elsewhereEnd } from './instances/elsewhere.ts';
import { list, listByRegion } from './instances/list.ts';
import { observe } from './instances/observe.ts';
import { online } from './instances/online.ts';
import { refusals } from './instances/refusals.ts';
import { secondCycle } from './instances/second-cycle.ts';
import { start, stop } from './instances/stop-start.ts';
import { companion, companionAlone, companionCreate } from './machine/companion.ts';
import { plainScenario } from './plain/plain.ts';
import { restart } from './restart/restart.ts';
import type { Scenario } from './scenario.ts';
import { volumes } from './volumes/volumes.ts';

/**
 * Every scenario, in running order: free ones first; those that need the instance ONLINE between `online` and `stop`, in
 * its 65 s of observation. What needs a unit of its own is bought there all at once, and where none is free after
 * `destroy`, since a provider may have one. `unauthenticated` is last, since a target may ban an address after many
 * invalid credentials.
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
  companionCreate,
  raceCreate,
  volumes,
  companion,
  elsewhere,
  raceOnline,
  earlyDelete,
  observe,
  stop,
  start,
  secondCycle,
  race,
  elsewhereEnd,
  otherAccount,
  restart,
  destroy,
  companionAlone,
  alone,
  unauthenticated,
];

/**
 * The scenarios of a run: `plain` alone for a plain run; otherwise those of its level or, with `only`, those that the given
 * checks need, with their prerequisites.
 */
export function scenariosFor(
  level: Level,
  only: readonly { scenarios: readonly string[] }[] | undefined,
  { plain }: Pick<RunSettings, 'plain'> = {},
): Scenario[] {
  if (plain === true)
    return [
      plainScenario(
        level,
        SCENARIOS.map(({ id }) => id),
      ),
    ];
  const ofLevel = SCENARIOS.filter((scenario) => includes(level, scenario.level));
  if (only === undefined) return ofLevel;
  const needed = new Set<string>();
  const need = (id: string): void => {
    if (needed.has(id)) return;
    needed.add(id);
    for (const other of SCENARIOS.find((scenario) => scenario.id === id)?.after ?? []) need(other);
  };
  for (const check of only) for (const id of check.scenarios) need(id);
  if (Object.keys(POSTPONABLE).some((id) => needed.has(id))) need('alone');
  return ofLevel.filter(({ id }) => needed.has(id));
}
