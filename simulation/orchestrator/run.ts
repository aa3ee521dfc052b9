import { type Outcome, runWorld } from '../runner/run-world.ts';
import type { Prepared } from './accounts.ts';
import { checkSoundPlatform } from './check-sound-platform.ts';
import { injectFaults } from './fault-injection.ts';
import { injectHostFaults } from './host-faults.ts';
import { acceptRealLosses } from './operator.ts';
import { checkCapacity, quiesce } from './quiesce.ts';
import { command } from './workload/commands.ts';
import { type OrchestratorPlant, type OrchestratorSubject, World } from './world.ts';

/** Every so many commands the operator compares the instances with the platform. */
const COMMANDS_BETWEEN_OPERATOR_CHECKS = 25;
const LONGEST_PAUSE_MS = 120_000;

/** Runs orchestrators over a simulated platform, over two of which one is sound, or over one of several hosts. Never throws. */
export async function runOrchestrator(
  { template, accounts }: Prepared,
  seed: string,
  commands: number,
  subject: OrchestratorSubject = 'orchestrator',
  plant?: OrchestratorPlant,
): Promise<Outcome> {
  const world = new World(seed, await template.take(), accounts, subject, plant);
  const startedAt = world.scheduler.now;
  return runWorld(
    world,
    {
      limitPause: (ms) => Math.min(ms, LONGEST_PAUSE_MS),
      beforeCommand: async (world, faults, count) => {
        await injectFaults(world, faults);
        injectHostFaults(world);
        await world.cordons.change();
        if (count % COMMANDS_BETWEEN_OPERATOR_CHECKS === 0) await acceptRealLosses(world);
      },
      command,
      check: async (world) => {
        await checkCapacity(world);
        await checkSoundPlatform(world, startedAt);
        world.inspector.assertHeld();
      },
      quiesce,
      // Longer than any call that is under way.
      shutDown: (world) => world.shutDown(20_000),
    },
    { seed, commands },
  );
}
