import { BudgetError } from '../resources/budget.ts';
import { race, raceCreate, raceOnline } from './capacity/race.ts';
import { earlyDelete } from './instances/destroy.ts';
import { elsewhere, elsewhereEnd } from './instances/elsewhere.ts';
import { destroyAndConfirm } from './instances/purchase.ts';
import type { Scenario } from './scenario.ts';
import type { Session } from './session.ts';

/** The scenarios that may be postponed, by the first. */
export const POSTPONABLE: Readonly<Record<string, readonly Scenario[]>> = {
  elsewhere: [elsewhere, elsewhereEnd],
  race: [raceCreate, raceOnline, race],
  'early-delete': [earlyDelete],
};

/** A purchase of the scenario is over the cap: it is made up for once the run holds less, or its steps are skipped. */
export function giveUp(session: Session, scenario: Scenario, { message }: BudgetError): void {
  // The parts of a scenario, such as race-create and race-online, share the names of its steps.
  const id = scenario.id.replace(/-(?:create|online|end|alone)$/, '');
  if (session.holdsInstances && POSTPONABLE[id]?.[0] === scenario) session.postponed.add(id);
  else session.skip([id], message);
}

/** Runs what found no free unit, too small a quota or too little money, while the run held other instances. */
export const alone: Scenario = {
  id: 'alone',
  level: 'full',
  title: 'makes up for what found no free unit beside the first instance',
  after: [],
  buys: [],
  async run(session) {
    for (const [id, scenarios] of Object.entries(POSTPONABLE)) {
      if (!session.postponed.delete(id)) continue;
      const { primary } = session;
      if (primary !== undefined && primary.entry.state !== 'gone')
        await destroyAndConfirm(session, 'alone/first', primary);
      try {
        for (const scenario of scenarios) await scenario.run(session);
      } catch (error) {
        if (!(error instanceof BudgetError)) throw error;
        session.skip([id], error.message);
      }
      if (session.postponed.has(id)) session.skip([id], 'instances of the run were not seen to be gone');
    }
  },
};
