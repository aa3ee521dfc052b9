import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg } from 'node:os';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { printLine } from '../src/runtime/print.ts';
import { type PostgresServer, startPostgres } from '../test/support/databases/postgres.ts';
import { measures } from './scale/measures.ts';
import { printFailures, printRows } from './scale/report.ts';
import { type Row, run, runsBesideOthers } from './scale/run.ts';

/** Measures costs with n and with 10 n items. Fails if a cost grows faster than allowed. */
const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    /** Names of rows, separated by commas. */
    only: { type: 'string' },
    /** Overrides the n of each row. */
    n: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const wanted = chosen(values.only);
const servers: Promise<PostgresServer>[] = [];
try {
  process.exitCode = (await measureAll()) ? 0 : 1;
} finally {
  for (const server of await Promise.allSettled(servers))
    if (server.status === 'fulfilled') await server.value[Symbol.asyncDispose]();
}

/** A database on the shared server, or on one of its own, whose CPU is then that of one subject. */
async function createDatabase(isOwn: boolean): Promise<string> {
  const server = (isOwn ? undefined : servers[0]) ?? startQuiet();
  if (!servers.includes(server)) servers.push(server);
  return (await server).createDatabase();
}

/** Starts a PostgreSQL without background activity. A given server is not changed. */
async function startQuiet(): Promise<PostgresServer> {
  const started = await startPostgres();
  if (!process.env['BERTH_TEST_POSTGRES']) {
    await started.query('ALTER SYSTEM SET autovacuum = off');
    await started.query('SELECT pg_reload_conf()');
  }
  return started;
}

async function measureAll(): Promise<boolean> {
  const tasks = wanted.flatMap((measure) =>
    measure.on.map((store) => {
      const begin = (): Promise<Row[]> => {
        process.stderr.write(`${measure.id} on ${store} …\n`);
        const n = values.n === undefined ? undefined : Number(values.n);
        return run(measure, store, { isQuick: values.quick, n, createDatabase });
      };
      return { begin, store, isBesideOthers: runsBesideOthers(measure, values.quick) };
    }),
  );
  const measured = new Map<(typeof tasks)[number], Row[]>();
  const measure = async (task: (typeof tasks)[number]) => measured.set(task, await task.begin());
  const alone = tasks.filter(({ isBesideOthers }) => !isBesideOthers);
  // What may not grow is CPU time: with --quick each database has a core.
  const lanes = values.quick ? Object.values(Object.groupBy(alone, ({ store }) => store)) : [alone];
  await Promise.all(
    lanes.map(async (lane) => {
      for (const task of lane) await measure(task);
    }),
  );
  await Promise.all(tasks.filter(({ isBesideOthers }) => isBesideOthers).map(measure));
  const rows = tasks.flatMap((task) => measured.get(task) ?? []);
  const machine = {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    node: process.version,
    loadAverage: loadavg()[0],
  };
  const failed = rows.filter(({ isTooMuch }) => isTooMuch);
  const text = JSON.stringify(
    { machine, isQuick: values.quick, rows, at: new Date().toISOString() },
    null,
    2,
  );
  const file = join(import.meta.dirname, 'results', 'scale.json');
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${text}\n`);
  if (values.json) printLine(text);
  else {
    printLine('');
    printLine(`${machine.cpu}, ${machine.cores} cores, Node ${machine.node}`);
    printLine('');
    printRows(rows);
    printLine('');
    printLine(`written to ${file}`);
    printFailures(failed);
  }
  return failed.length === 0;
}

/** @throws {Error} for an unknown name */
function chosen(only: string | undefined): typeof measures {
  if (only === undefined) return measures;
  return only.split(',').map((id) => {
    const measure = measures.find((one) => one.id === id);
    if (measure === undefined)
      throw new Error(`there is no row ${id}; there are ${measures.map((one) => one.id).join(', ')}`);
    return measure;
  });
}
