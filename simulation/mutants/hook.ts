import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';
import { applyMutant } from './mutant.ts';
import { mutants } from './mutants.ts';

/** Loaded before all else by a process of the simulation that is to run a mutant; production never loads it. */
const id = process.env['BERTH_SIM_MUTANT'];
const mutant = mutants.find((candidate) => candidate.id === id);
if (mutant === undefined) throw new Error(`there is no mutant ${id}`);

const root = fileURLToPath(new URL('../../', import.meta.url));
const files = new Map(mutant.patches.map(({ file }) => [new URL(file, `file://${root}`).href, file]));

registerHooks({
  load: (url, context, nextLoad) => {
    const loaded = nextLoad(url, context);
    const file = files.get(url);
    if (file === undefined || loaded.source === undefined || loaded.source === null) return loaded;
    const source = Buffer.from(loaded.source as Uint8Array).toString();
    return { ...loaded, source: applyMutant(mutant, file, source) };
  },
});
