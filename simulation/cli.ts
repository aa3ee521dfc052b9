import { fork } from 'node:child_process';
import { rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { describeFailure, Summary } from './runner/report.ts';
import type { Outcome } from './runner/run-world.ts';
import { shrink } from './runner/shrink.ts';
import { engines, flagsOf, isEngine, type Simulation, subjects } from './runner/subject.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    seed: { type: 'string' },
    commands: { type: 'string', default: '300' },
    workers: { type: 'string', default: String(availableParallelism()) },
    json: { type: 'boolean', default: false },
    /** Fails if a smaller share of the platform's calls met a fault. */
    'least-faulted': { type: 'string', default: '0' },
    /** Simulates the marketplace instead of the orchestrator. */
    marketplace: { type: 'boolean', default: false },
    /** Simulates an orchestrator on two platforms, of which one is sound. */
    platforms: { type: 'boolean', default: false },
    /** Simulates an orchestrator on a platform of several hosts, which fall silent. */
    hosts: { type: 'boolean', default: false },
    /** Simulates an orchestrator with a real driver over an engine in memory, such as `libvirt`. */
    engine: { type: 'string' },
    /** Runs the servers of each world on PostgreSQL instead of SQLite. */
    postgres: { type: 'boolean', default: false },
    mutant: { type: 'string' },
    worker: { type: 'boolean', default: false },
  },
});
const { mutant, worker } = values;
const { engine } = values;
if (engine !== undefined && !engines.some((name) => name === engine))
  throw new Error(`--engine takes one of ${engines.join(', ')}`);
const subject =
  subjects.find((name) => (isEngine(name) ? name === engine : name !== 'orchestrator' && values[name])) ??
  'orchestrator';
const on = values.postgres ? 'postgres' : 'sqlite';
const commands = Number(values.commands);
const first = Number(values.seed ?? 1);
const count = Number(values.seeds ?? (values.seed === undefined ? 100 : 1));
if (![commands, first, count].every((value) => Number.isInteger(value) && value >= 0))
  throw new Error('--seeds, --seed and --commands take whole numbers');

/** The process that only hands out seeds does not load the program. */
async function prepare(): Promise<Simulation> {
  const { prepareSimulation } = await import('./simulations.ts');
  const simulation = await prepareSimulation(subject, on);
  const { plantOf } = await import('./mutants/mutants.ts');
  const plant = plantOf(process.env['BERTH_SIM_MUTANT']);
  return { ...simulation, run: (seed, commands) => simulation.run(seed, commands, plant) };
}

/** Runs the seeds that its parent sends, one after another. */
async function work(): Promise<void> {
  const simulation = await prepare();
  const clean = (): void => rmSync(simulation.folder, { recursive: true, force: true });
  process.on('exit', clean);
  process.on('disconnect', () => process.exit());
  process.on('message', (seed: number) => {
    const send = (outcome: Outcome) => process.send?.(outcome);
    void simulation.run(String(seed), commands).then(send);
  });
  process.send?.('ready');
}

/** Gives each seed to the next worker that is free. */
async function spread(workers: number, done: (outcome: Outcome) => void): Promise<void> {
  let next = first;
  const one = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const child = fork(import.meta.filename, [
        ...['--worker', '--commands', String(commands)],
        ...flagsOf(subject, on),
      ]);
      child.on('error', reject);
      child.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`a worker ended with ${code}`))));
      child.on('message', (message: Outcome | 'ready') => {
        if (message !== 'ready') done(message);
        if (next < first + count) child.send(next++);
        else child.disconnect();
      });
    });
  await Promise.all(Array.from({ length: Math.min(workers, count) }, one));
}

async function main(): Promise<void> {
  const stop = await startDatabases();
  const startedAt = performance.now();
  const summary = new Summary();
  const failures: Outcome[] = [];
  await spread(Number(values.workers), (outcome) => {
    summary.add(outcome);
    if (outcome.failure !== undefined) failures.push(outcome);
    if (outcome.failure !== undefined && !values.json)
      process.stdout.write(`seed ${outcome.seed} fails: ${outcome.failure.message}\n`);
  });
  const [worst] = failures.sort((a, b) => Number(a.seed) - Number(b.seed));
  const smallest = worst === undefined ? undefined : await shrinkAlone(worst);
  const report = summary.toReport(performance.now() - startedAt);
  if (values.json) process.stdout.write(`${JSON.stringify({ ...report, failures }, null, 2)}\n`);
  else process.stdout.write(summary.toText(performance.now() - startedAt));
  if (smallest?.failure !== undefined && !values.json)
    process.stdout.write(describeFailure(smallest, { subject, mutant, on }));
  const isQuiet = report.faultedShare < Number(values['least-faulted']);
  if (isQuiet)
    process.stdout.write(`fewer than ${values['least-faulted']} of the platform's calls met a fault\n`);
  process.exitCode = failures.length > 0 || isQuiet ? 1 : 0;
  await stop();
}

/** Starts the one PostgreSQL of all workers. Returns what stops it. */
async function startDatabases(): Promise<() => Promise<void>> {
  if (on === 'sqlite') return async () => undefined;
  const { setup } = await import('../test/support/databases/shared-postgres.ts');
  return setup();
}

async function shrinkAlone(outcome: Outcome): Promise<Outcome> {
  const simulation = await prepare();
  try {
    return await shrink(simulation, outcome);
  } finally {
    await simulation.close();
  }
}

/** Runs the same command in a process that has loaded the mutant, as its own workers then have. */
function restartWith(mutant: string): Promise<void> {
  const child = fork(import.meta.filename, process.argv.slice(2), {
    execArgv: ['--import', new URL('mutants/hook.ts', import.meta.url).href],
    env: { ...process.env, BERTH_SIM_MUTANT: mutant },
  });
  return new Promise((resolve) => {
    child.on('exit', (code) => {
      process.exitCode = code ?? 1;
      resolve();
    });
  });
}

if (worker) await work();
else if (mutant !== undefined && process.env['BERTH_SIM_MUTANT'] === undefined) await restartWith(mutant);
else await main();
