import type { Outcome } from './run-world.ts';

/** Engines that a real driver works with in the simulation. */
export const engines = ['libvirt', 'incus', 'exec', 'openstack'] as const;
export type EngineName = (typeof engines)[number];

/**
 * What is simulated: an orchestrator on one platform, on two of which one is sound, on one of several hosts, with a real driver over
 * an engine, or a marketplace.
 */
export const subjects = ['orchestrator', 'platforms', 'hosts', ...engines, 'marketplace'] as const;
export type Subject = (typeof subjects)[number];

export const isEngine = (subject: Subject): subject is EngineName =>
  (engines as readonly Subject[]).includes(subject);

/** The database that the servers of a world share. */
export type DatabaseKind = 'sqlite' | 'postgres';

/** The flags of the command line that choose what is simulated. */
export function flagsOf(subject: Subject, on: DatabaseKind = 'sqlite'): string[] {
  const flags = on === 'postgres' ? ['--postgres'] : [];
  if (subject === 'orchestrator') return flags;
  return [...(isEngine(subject) ? ['--engine', subject] : [`--${subject}`]), ...flags];
}

/** A `Plant` of any simulation. */
export type AnyPlant = (ports: never, world: never, process: never) => unknown;

/** A simulation whose database template is made, ready for any number of runs. */
export interface Simulation {
  /** Holds the databases of runs, if they are files. Left by a process that is killed. */
  folder: string;
  /** `plant`: a planted fault for this simulation, which changes the ports of its processes. */
  run(seed: string, commands: number, plant?: AnyPlant): Promise<Outcome>;
  /** Removes the template, and the folder. */
  close(): Promise<void>;
}
