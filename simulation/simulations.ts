import type { EnginePlant } from './engine/world.ts';
import type { MarketPlant } from './marketplace/world.ts';
import type { OrchestratorPlant } from './orchestrator/world.ts';
import { isEngine, type Simulation, type Subject } from './runner/subject.ts';

/** Makes the database that every run of the process starts from, and loads only what that simulation runs. */
export async function prepareSimulation(subject: Subject): Promise<Simulation> {
  if (subject === 'marketplace') {
    const { prepareMarket } = await import('./marketplace/accounts.ts');
    const { runMarket } = await import('./marketplace/run.ts');
    const prepared = await prepareMarket();
    return {
      folder: prepared.folder,
      run: (seed, commands, plant) => runMarket(prepared, seed, commands, plant as MarketPlant),
    };
  }
  const { prepareOrchestrator } = await import('./orchestrator/accounts.ts');
  if (isEngine(subject)) {
    const { runEngine } = await import('./engine/run.ts');
    const prepared = await prepareOrchestrator();
    return {
      folder: prepared.folder,
      run: (seed, commands, plant) => runEngine(prepared, seed, commands, subject, plant as EnginePlant),
    };
  }
  const { runOrchestrator } = await import('./orchestrator/run.ts');
  const prepared = await prepareOrchestrator();
  return {
    folder: prepared.folder,
    run: (seed, commands, plant) =>
      runOrchestrator(prepared, seed, commands, subject, plant as OrchestratorPlant),
  };
}
