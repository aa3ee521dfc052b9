import { rmSync } from 'node:fs';
import { type Subject, subjects } from '../runner/subject.ts';
import { prepareSimulation } from '../simulations.ts';
import { HUNT_COMMANDS, type Hunted } from './hunt.ts';

/** Runs seeds from `first` to `last` in this process until an invariant is broken; null: none was. */
async function hunt(subject: Subject, first: number, last: number): Promise<Hunted | null> {
  const simulation = await prepareSimulation(subject);
  const clean = (): void => rmSync(simulation.folder, { recursive: true, force: true });
  process.on('exit', clean);
  try {
    for (let seed = first; seed <= last; seed++) {
      const { failure } = await simulation.run(String(seed), HUNT_COMMANDS[subject]);
      if (failure !== undefined) {
        const { invariant, message } = failure;
        if (invariant === 'crash' && subject !== 'marketplace')
          throw new Error(`seed ${seed} does not come to its end: ${message}`);
        return { invariant, message, seed };
      }
    }
    return null;
  } finally {
    clean();
  }
}

const [name, ...seeds] = process.argv.slice(2);
const [first, last] = seeds.map(Number);
const subject = subjects.find((candidate) => candidate === name);
if (subject === undefined || first === undefined || last === undefined || process.send === undefined)
  throw new Error('this is a process of npm run sim:mutants');
// Whoever asked has ended: nobody wants the answer.
const end = (): never => process.exit(1);
process.on('disconnect', end);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, end);
process.send(await hunt(subject, first, last));
process.off('disconnect', end);
process.disconnect();
