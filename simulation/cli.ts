import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { Worker } from './mutants/workers.ts';
import { describeFailure, Summary } from './runner/report.ts';
import type { Outcome } from './runner/run-world.ts';
import { engines, isEngine, subjects } from './runner/subject.ts';

const { values } = parseArgs({
  options: {
    seeds: { type: 'string' },
    seed: { type: 'string' },
    commands: { type: 'string', default: '300' },
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
  },
});
const { engine, mutant } = values;
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

/** Starts the one PostgreSQL of all workers. Returns what stops it. */
async function startDatabases(): Promise<() => Promise<void>> {
  if (on === 'sqlite') return async () => undefined;
  const { setup } = await import('../test/support/databases/shared-postgres.ts');
  return setup();
}

const stop = await startDatabases();
const startedAt = performance.now();
const summary = new Summary();
const failures: Outcome[] = [];
let next = first;

/** Runs the next seed in a process, and so on. */
async function work(): Promise<void> {
  const worker = new Worker(mutant);
  while (next < first + count) {
    const outcome = await worker.run({ subject, on, mutant, commands, seed: next++ });
    summary.add(outcome);
    if (outcome.failure === undefined) continue;
    failures.push(outcome);
    process.stdout.write(`seed ${outcome.seed} fails: ${outcome.failure.message}\n`);
  }
  worker.end();
}

await Promise.all(Array.from({ length: Math.min(availableParallelism(), count) }, work));
process.stdout.write(summary.toText(performance.now() - startedAt));
const [lowest] = failures.sort((a, b) => Number(a.seed) - Number(b.seed));
if (lowest !== undefined) process.stdout.write(describeFailure(lowest, { subject, mutant, on }));
const isQuiet = summary.faultedShare < Number(values['least-faulted']);
if (isQuiet)
  process.stdout.write(`fewer than ${values['least-faulted']} of the platform's calls met a fault\n`);
process.exitCode = failures.length > 0 || isQuiet ? 1 : 0;
await stop();
