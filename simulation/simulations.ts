import { prepareMarket } from './marketplace/accounts.ts';
import { runMarket } from './marketplace/run.ts';
import { prepare } from './orchestrator/accounts.ts';
import { type Outcome, run } from './orchestrator/run.ts';

/** What a process simulates, made ready once. */
export interface Simulation {
  folder: string;
  run(seed: string, commands: number): Promise<Outcome>;
}

export const subjects = ['orchestrator', 'marketplace'] as const;
export type Subject = (typeof subjects)[number];

/** Makes what every run of a process begins with. */
export async function prepareSimulation(subject: Subject): Promise<Simulation> {
  if (subject === 'orchestrator') {
    const prepared = await prepare();
    return { folder: prepared.folder, run: (seed, commands) => run(prepared, seed, commands) };
  }
  const prepared = await prepareMarket();
  return { folder: prepared.folder, run: (seed, commands) => runMarket(prepared, seed, commands) };
}
