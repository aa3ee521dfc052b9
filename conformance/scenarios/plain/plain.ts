import { includes, type Level } from '../../transcript/records.ts';
import { takeOverUnexplained } from '../instances/strays.ts';
import type { Purchase, Scenario } from '../scenario.ts';
import type { Session } from '../session.ts';
import { Background, together } from './background.ts';
import { PACE, Pace } from './pace.ts';
import { Rental } from './rental.ts';
import { signIn } from './sign-in.ts';
import type { Tenant } from './tenant.ts';

const MINUTE_MS = 60_000;
/** How often a run of level read-only reads the catalogue. */
const CATALOG_ROUNDS = 4;

const RENTALS: readonly { level: Level; steps: string; isPaused: boolean; buys: Purchase }[] = [
  {
    level: 'lifecycle',
    steps: '',
    isPaused: true,
    buys: {
      type: 'instance',
      offer: 'cheapest',
      what: 'a machine that is rented, stopped, started and ended',
    },
  },
  {
    level: 'full',
    steps: 'second/',
    isPaused: false,
    buys: { type: 'instance', offer: 'cheapest', what: 'a machine that is rented beside the first' },
  },
];

/**
 * What a plain run does at a level: what a marketplace does, and nothing else. `others`: the scenarios left out. `tenant`
 * uses its machines.
 */
export function plainScenario(level: Level, others: readonly string[], tenant?: Tenant): Scenario {
  const rentals = RENTALS.filter((rental) => includes(level, rental.level));
  return {
    id: 'plain',
    level: 'read-only',
    title:
      rentals.length === 0
        ? 'reads the offers as a marketplace does'
        : 'rents machines as a marketplace does',
    after: [],
    minutes: rentals.length === 0 ? 3 : 50,
    buys: rentals.map(({ buys }) => buys),
    async run(session) {
      await signIn(session);
      const background = new Background(session);
      await background.during(async () => {
        const before = await background.nextList();
        if (rentals.length === 0) return readOn(session, background);
        session.knowBefore(before);
        let created: Promise<void> = Promise.resolve();
        const lives = rentals.map(({ steps, isPaused }) => {
          const pace = new Pace(session.draws, `user/${steps}`);
          const plan = { steps, isPaused: tenant?.isPaused ?? isPaused, tenant };
          const rental = new Rental(session, pace, background, plan);
          // Where there is one unit, the machine of the run's checks gets it.
          const earlier = created;
          const live = async (): Promise<void> => {
            await earlier;
            await session.sleep(pace.between(MINUTE_MS / 3, 4 * MINUTE_MS));
            await rental.live();
          };
          const life = live();
          // A run that is interrupted before the order creates nothing.
          created = Promise.race([rental.created, life.catch(() => {})]);
          return life;
        });
        await together(session, lives);
        await takeOverUnexplained(session, await background.nextList('cleanup/strays'));
      });
      leaveOut(session, others);
    },
  };
}

async function readOn(session: Session, background: Background): Promise<void> {
  while (background.catalogRounds < CATALOG_ROUNDS) await session.sleep(PACE.catalogMs / 2);
}

function leaveOut(session: Session, others: readonly string[]): void {
  session.skip(['volumes', 'companion/volume'], 'a plain run creates no volumes (--plain)');
  session.skip(others, 'a plain run leaves out what no ordinary client sends (--plain)');
}
