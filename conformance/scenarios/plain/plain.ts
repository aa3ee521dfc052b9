import { includes, type Level } from '../../transcript/records.ts';
import { takeOverUnexplained } from '../instances/strays.ts';
import type { Purchase, Scenario } from '../scenario.ts';
import type { Session } from '../session.ts';
import { Background } from './background.ts';
import { PACE, Pace } from './pace.ts';
import { Rental, type Tenant } from './rental.ts';
import { signIn } from './sign-in.ts';

const MINUTE_MS = 60_000;
/** How often a run of level read-only reads the catalogue. */
const CATALOG_ROUNDS = 4;

/** What a plain run does: what a marketplace does, and nothing else. `others`: the scenarios left out. `tenant` uses its machine. */
export function plainScenario(level: Level, others: readonly string[], tenant?: Tenant): Scenario {
  const isRenting = includes(level, 'lifecycle');
  return {
    id: 'plain',
    level: 'read-only',
    title: isRenting ? 'rents a machine as a marketplace does' : 'reads the offers as a marketplace does',
    after: [],
    minutes: isRenting ? 50 : 3,
    buys: isRenting ? [MACHINE] : [],
    async run(session) {
      await signIn(session);
      const background = new Background(session);
      await background.during(async () => {
        const before = await background.nextList();
        if (!isRenting) return readOn(session, background);
        session.knowBefore(before);
        const pace = new Pace(session.draws, 'user');
        await session.sleep(pace.between(MINUTE_MS / 3, 4 * MINUTE_MS));
        await new Rental(session, pace, background, tenant).live();
        await takeOverUnexplained(session, await background.nextList('cleanup/strays'));
      });
      leaveOut(session, others);
    },
  };
}

const MACHINE: Purchase = {
  type: 'instance',
  offer: 'cheapest',
  what: 'a machine that is rented, stopped, started and ended',
};

async function readOn(session: Session, background: Background): Promise<void> {
  while (background.catalogRounds < CATALOG_ROUNDS) await session.sleep(PACE.catalogMs / 2);
}

function leaveOut(session: Session, others: readonly string[]): void {
  session.skip(['volumes', 'companion/volume'], 'a plain run creates no volumes (--plain)');
  session.skip(others, 'a plain run leaves out what no ordinary client sends (--plain)');
}
