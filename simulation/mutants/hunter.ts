import { rmSync } from 'node:fs';
import { prepare } from '../clients/accounts.ts';
import { run } from '../run.ts';
import { HUNT_COMMANDS, type Hunted } from './hunt.ts';

/** Runs seeds from `first` to `last` in this process until an invariant is broken; null: none was. */
async function hunt(first: number, last: number): Promise<Hunted | null> {
  const prepared = await prepare();
  const clean = (): void => rmSync(prepared.folder, { recursive: true, force: true });
  process.on('exit', clean);
  try {
    for (let seed = first; seed <= last; seed++) {
      const { failure } = await run(prepared, String(seed), HUNT_COMMANDS);
      if (failure !== undefined) {
        const { invariant, message } = failure;
        if (invariant === 'crash') throw new Error(`seed ${seed} does not come to its end: ${message}`);
        return { invariant, message, seed };
      }
    }
    return null;
  } finally {
    clean();
  }
}

const [first, last] = process.argv.slice(2).map(Number);
if (first === undefined || last === undefined || process.send === undefined)
  throw new Error('this is a process of npm run sim:mutants');
// Whoever asked has ended: nobody wants the answer.
const end = (): never => process.exit(1);
process.on('disconnect', end);
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, end);
process.send(await hunt(first, last));
process.off('disconnect', end);
process.disconnect();
