import { registerHooks } from 'node:module';
import { applyPatch, isPatch } from './mutant.ts';
import { mutantOf } from './mutants.ts';

/** Loaded before all else by a process that is to run a mutant with a patch; production never loads it. */
const { plant } = mutantOf(process.env['BERTH_SIM_MUTANT'] ?? '');
if (isPatch(plant)) {
  const patched = new URL(`../../${plant.file}`, import.meta.url).href;
  registerHooks({
    load: (url, context, nextLoad) => {
      const loaded = nextLoad(url, context);
      if (url !== patched || loaded.source === undefined || loaded.source === null) return loaded;
      return { ...loaded, source: applyPatch(plant, Buffer.from(loaded.source as Uint8Array).toString()) };
    },
  });
}
