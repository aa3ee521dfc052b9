import { rmSync } from 'node:fs';
import type { Simulation, Subject } from '../runner/subject.ts';
import { prepareSimulation } from '../simulations.ts';
import type { Chase, Hunted } from './hunt.ts';
import { plantOf } from './mutants.ts';

const prepared = new Map<Subject, Simulation>();

/** Runs seeds from `first` to `last` in this process until an invariant is broken; null: none was. */
async function hunt({ simulation: subject, mutant, commands, first, last }: Chase): Promise<Hunted | null> {
  const simulation = prepared.get(subject) ?? (await prepareSimulation(subject));
  prepared.set(subject, simulation);
  const plant = plantOf(mutant);
  for (let seed = first; seed <= last; seed++) {
    const { failure } = await simulation.run(String(seed), commands, plant);
    if (failure !== undefined) {
      const { invariant, message } = failure;
      if (invariant === 'never') throw new Error(`seed ${seed} does not come to its end: ${message}`);
      return { invariant, message, seed };
    }
  }
  return null;
}

if (process.send === undefined) throw new Error('this is a process of npm run sim -- mutants');
process.on('exit', () => {
  for (const { folder } of prepared.values()) rmSync(folder, { recursive: true, force: true });
});
// The parent has all results, or has ended.
const end = (): never => process.exit(0);
process.on('disconnect', end);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, end);
process.on('message', (chase: Chase) => void hunt(chase).then((hunted) => process.send?.(hunted)));
