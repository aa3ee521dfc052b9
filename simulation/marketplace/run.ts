import { type Outcome, runWorld } from '../runner/run-world.ts';
import type { MarketPrepared } from './accounts.ts';
import { injectMarketFaults } from './fault-injection.ts';
import { booksAreExact } from './invariants/books.ts';
import { machinesAreSingle } from './invariants/quiescence.ts';
import { credit } from './operator.ts';
import { quiesceMarket, shutDownMarket } from './quiesce.ts';
import { marketCommand } from './workload/commands.ts';
import { type MarketPlant, MarketWorld } from './world.ts';

const COMMANDS_BETWEEN_AUDITS = 10;
const LONGEST_PAUSE_MS = 180_000;

/** Runs marketplaces over simulated providers. Never throws. */
export async function runMarket(
  { template, users }: MarketPrepared,
  seed: string,
  commands: number,
  plant?: MarketPlant,
): Promise<Outcome> {
  return runWorld(
    new MarketWorld(seed, { database: await template.take(), users }, plant),
    {
      begin: async (world) => {
        for (const { teamId, name } of world.users.all)
          await credit(world, teamId, world.scenario.creditMicroUsd, `opening-${name}`);
      },
      limitPause: (ms) => Math.ceil(Math.min(ms, LONGEST_PAUSE_MS)),
      beforeCommand: injectMarketFaults,
      command: marketCommand,
      check: async (world, count) => {
        machinesAreSingle(world);
        if (count % COMMANDS_BETWEEN_AUDITS === 0) await booksAreExact(world);
      },
      quiesce: quiesceMarket,
      shutDown: shutDownMarket,
    },
    { seed, commands },
  );
}
