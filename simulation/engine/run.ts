import { withVirtualTimers } from '../kernel/virtual-timers.ts';
import type { Prepared } from '../orchestrator/accounts.ts';
import { injectIntoServers, type ServerFault } from '../orchestrator/server-faults.ts';
import { command } from '../orchestrator/workload/commands.ts';
import { type Outcome, runWorld } from '../runner/run-world.ts';
import type { EngineName } from '../runner/subject.ts';
import { quiesce } from './quiesce.ts';
import { type EnginePlant, EngineWorld } from './world.ts';

const LONGEST_PAUSE_MS = 120_000;

/** Runs orchestrators with a real driver over an engine in memory. Never throws. */
export async function runEngine(
  { template, accounts }: Prepared,
  seed: string,
  commands: number,
  engine: EngineName,
  plant?: EnginePlant,
): Promise<Outcome> {
  const world = new EngineWorld(seed, await template.take(), accounts, engine, plant);
  const steps: Parameters<typeof runWorld<EngineWorld>>[1] = {
    limitPause: (ms) => Math.min(ms, LONGEST_PAUSE_MS),
    beforeCommand: async (world, faults) => {
      const rates = world.scenario.serverFaults;
      for (const name of Object.keys(rates) as ServerFault[])
        if (faults.happens(rates[name])) await injectIntoServers(world, faults, name);
      await world.backups.act();
      world.people.act();
      await world.writers.write();
      await world.outages.act();
    },
    command,
    check: async (world) => world.inspector.assertHeld(),
    quiesce,
    // Longer than any call that is under way.
    shutDown: (world) => world.shutDown(60_000),
  };
  return withVirtualTimers(world.scheduler, () => runWorld(world, steps, { seed, commands }));
}
