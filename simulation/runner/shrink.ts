import type { Outcome } from './run-world.ts';
import type { Simulation } from './subject.ts';

const SHARES = [1, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1, 0.05];

/** The same failure with fewer commands: the shortest beginning of the run, of a few that are tried, that shows it. */
export async function shrink(simulation: Simulation, failed: Outcome): Promise<Outcome> {
  let smallest = failed;
  const most = Math.min(failed.commands, failed.tally.commands);
  for (const share of SHARES) {
    const commands = Math.ceil(most * share);
    if (commands >= smallest.commands) continue;
    const outcome = await simulation.run(failed.seed, commands);
    if (outcome.failure?.invariant === failed.failure?.invariant) smallest = outcome;
  }
  return smallest;
}
