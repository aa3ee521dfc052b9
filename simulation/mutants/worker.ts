import { rmSync } from 'node:fs';
import type { Outcome } from '../runner/run-world.ts';
import type { DatabaseKind, Simulation, Subject } from '../runner/subject.ts';
import { prepareSimulation } from '../simulations.ts';
import { plantOf } from './mutants.ts';

/** One run that a worker is asked for. */
export interface Run {
  subject: Subject;
  on: DatabaseKind;
  /** The id of a planted fault. */
  mutant?: string | undefined;
  seed: number;
  commands: number;
}

const prepared = new Map<Subject, Simulation>();

async function run({ subject, on, mutant, seed, commands }: Run): Promise<Outcome> {
  const simulation = prepared.get(subject) ?? (await prepareSimulation(subject, on));
  prepared.set(subject, simulation);
  return simulation.run(String(seed), commands, plantOf(mutant));
}

if (process.send === undefined) throw new Error('this is a process of npm run sim');
process.on('exit', () => {
  for (const { folder } of prepared.values()) rmSync(folder, { recursive: true, force: true });
});
// The parent has all results, or has ended.
const end = (): never => process.exit(0);
process.on('disconnect', end);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, end);
process.on('message', (asked: Run) => void run(asked).then((outcome) => process.send?.(outcome)));
