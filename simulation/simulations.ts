import { runEngine } from './engine/run.ts';
import { prepareMarket } from './marketplace/accounts.ts';
import { runMarket } from './marketplace/run.ts';
import { prepareOrchestrator } from './orchestrator/accounts.ts';
import { runOrchestrator } from './orchestrator/run.ts';
import { isEngine, type Simulation, type Subject } from './runner/subject.ts';

/** Makes the database that every run of the process starts from. */
export async function prepareSimulation(subject: Subject): Promise<Simulation> {
  if (isEngine(subject)) {
    const prepared = await prepareOrchestrator();
    return {
      folder: prepared.folder,
      run: (seed, commands) => runEngine(prepared, seed, commands, { engine: subject }),
    };
  }
  if (subject !== 'marketplace') {
    const prepared = await prepareOrchestrator();
    return {
      folder: prepared.folder,
      run: (seed, commands) => runOrchestrator(prepared, seed, commands, subject),
    };
  }
  const prepared = await prepareMarket();
  return { folder: prepared.folder, run: (seed, commands) => runMarket(prepared, seed, commands) };
}
