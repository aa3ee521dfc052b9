import type { Outcome } from './run-world.ts';

/** What is simulated: an orchestrator on one platform, on two of which one is sound, on one of several hosts, or a marketplace. */
export const subjects = ['orchestrator', 'platforms', 'hosts', 'marketplace'] as const;
export type Subject = (typeof subjects)[number];

/** A simulation whose database template is made, ready for any number of runs. */
export interface Simulation {
  /** Holds the template and the databases of the runs; whoever prepared the simulation removes it. */
  folder: string;
  run(seed: string, commands: number): Promise<Outcome>;
}
