import type { EnginePlant } from './engine/world.ts';
import type { MarketPlant } from './marketplace/world.ts';
import type { OrchestratorPlant } from './orchestrator/world.ts';
import { type DatabaseKind, isEngine, type Simulation, type Subject } from './runner/subject.ts';

/** Makes the database that every run of the process starts from, and loads only what that simulation runs. */
export async function prepareSimulation(subject: Subject, on: DatabaseKind = 'sqlite'): Promise<Simulation> {
  if (subject === 'marketplace') {
    const { prepareMarket } = await import('./marketplace/accounts.ts');
    const { runMarket } = await import('./marketplace/run.ts');
    const prepared = await prepareMarket(on);
    return {
      ...prepared.template,
      run: (seed, commands, plant) => runMarket(prepared, seed, commands, plant as MarketPlant),
    };
  }
  const { prepareOrchestrator } = await import('./orchestrator/accounts.ts');
  const prepared = await prepareOrchestrator(on);
  const { template } = prepared;
  if (isEngine(subject)) {
    const { runEngine } = await import('./engine/run.ts');
    return {
      ...template,
      run: (seed, commands, plant) => runEngine(prepared, seed, commands, subject, plant as EnginePlant),
    };
  }
  const { runOrchestrator } = await import('./orchestrator/run.ts');
  return {
    ...template,
    run: (seed, commands, plant) =>
      runOrchestrator(prepared, seed, commands, subject, plant as OrchestratorPlant),
  };
}
