import { isEngine, type Simulation, type Subject } from './runner/subject.ts';

/** Makes the database that every run of the process starts from, and loads only what that simulation runs. */
export async function prepareSimulation(subject: Subject): Promise<Simulation> {
  if (subject === 'marketplace') {
    const { prepareMarket } = await import('./marketplace/accounts.ts');
    const { runMarket } = await import('./marketplace/run.ts');
    const prepared = await prepareMarket();
    return { folder: prepared.folder, run: (seed, commands) => runMarket(prepared, seed, commands) };
  }
  const { prepareOrchestrator } = await import('./orchestrator/accounts.ts');
  if (isEngine(subject)) {
    const { runEngine } = await import('./engine/run.ts');
    const prepared = await prepareOrchestrator();
    return {
      folder: prepared.folder,
      run: (seed, commands) => runEngine(prepared, seed, commands, { engine: subject }),
    };
  }
  const { runOrchestrator } = await import('./orchestrator/run.ts');
  const prepared = await prepareOrchestrator();
  return {
    folder: prepared.folder,
    run: (seed, commands) => runOrchestrator(prepared, seed, commands, subject),
  };
}
