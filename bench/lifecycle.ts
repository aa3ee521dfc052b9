import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { printLine, printTable } from '../src/runtime/print.ts';
import { type PostgresServer, startPostgres } from '../test/support/databases/postgres.ts';
import type { Round } from './lifecycle/calls.ts';
import { type Difference, differences, type Estimate, latencies } from './lifecycle/compare.ts';
import { startMarket } from './lifecycle/market.ts';

/**
 * How long the calls that change something at a provider take, where the provider answers at once. With `--against
 * CHECKOUT` the servers of that checkout are measured beside this one's, in turns, and it fails where a call takes
 * longer here by more than it may.
 */
const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    against: { type: 'string' },
    /** `sqlite-1`, `postgres-1`, `postgres-4`, with commas between them. */
    only: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});

interface Case {
  name: string;
  isPostgres: boolean;
  servers: number;
  /** How much longer a call may take than in the other checkout, in milliseconds. */
  mayTakeLongerMs: number;
}

const cases: readonly Case[] = [
  { name: 'sqlite-1', isPostgres: false, servers: 1, mayTakeLongerMs: 0 },
  { name: 'postgres-1', isPostgres: true, servers: 1, mayTakeLongerMs: 0 },
  { name: 'postgres-4', isPostgres: true, servers: 4, mayTakeLongerMs: 10 },
];
const here = join(import.meta.dirname, '..');
const there = values.against === undefined ? undefined : resolve(values.against);
const rounds = Number(values.rounds ?? (values.quick ? 60 : 300));
const WARM_UP = 10;
const MAX_DEPLOYMENTS = 100;

const wanted = values.only === undefined ? cases : values.only.split(',').map(caseOf);
let server: Promise<PostgresServer> | undefined;
const results: object[] = [];
const tooLong: string[] = [];
try {
  for (const one of wanted) await measure(one);
} finally {
  await (await server)?.[Symbol.asyncDispose]();
}
if (values.json) printLine(JSON.stringify({ rounds, results, tooLong }));
for (const line of tooLong) printLine(`TOO LONG: ${line}`);
process.exitCode = tooLong.length === 0 ? 0 : 1;

async function measure(one: Case): Promise<void> {
  process.stderr.write(`${one.name} …\n`);
  await using stack = new AsyncDisposableStack();
  const open = async (checkout: string) =>
    stack.use(
      await startMarket({
        checkout,
        createDatabase: one.isPostgres ? createDatabase : undefined,
        servers: one.servers,
        deployments: Math.min(rounds, MAX_DEPLOYMENTS),
      }),
    );
  const own = await open(here);
  const other = there === undefined ? undefined : await open(there);
  const taken: Round[] = [];
  const others: Round[] = [];
  const both = [async () => taken.push(await own.calls.round())];
  if (other !== undefined) both.push(async () => others.push(await other.calls.round()));
  for (let number = 0; number < WARM_UP; number++) for (const take of both) await take();
  taken.length = 0;
  others.length = 0;
  // Each checkout is the first of a pair as often as the second.
  for (let number = 0; number < rounds; number++)
    for (const take of number % 2 === 0 ? both : both.toReversed()) await take();
  report(one, taken, others);
}

function report({ name, servers, mayTakeLongerMs }: Case, taken: Round[], others: Round[]): void {
  const isCompared = others.length > 0;
  const own = latencies(taken);
  const other = isCompared ? latencies(others) : [];
  const compared = isCompared ? differences(taken, others) : [];
  for (const { call, p50, p99 } of compared)
    for (const [what, { value, low }] of Object.entries({ p50, p99 }))
      if (low > mayTakeLongerMs)
        tooLong.push(
          `${name}, ${call}: its ${what} is ${value.toFixed(1)} ms longer, at least ${low.toFixed(1)}`,
        );
  results.push({ name, own, ...(isCompared && { other, differences: compared }) });
  if (values.json) return;
  printLine('');
  printLine(`${name}: ${rounds} rounds, each request to the next of ${servers} servers; milliseconds`);
  const head = ['call', 'p50', 'p99'];
  printTable(
    isCompared ? [...head, 'other p50', 'other p99', 'p50 longer by', 'p99 longer by'] : head,
    own.map(({ call, p50, p99 }, index) => [
      call,
      ms(p50),
      ms(p99),
      ...(isCompared ? [ms(other[index]?.p50), ms(other[index]?.p99), ...toCells(compared[index])] : []),
    ]),
  );
}

function toCells(difference: Difference | undefined): string[] {
  const cell = ({ value, low, high }: Estimate) => `${ms(value)} (${ms(low)} to ${ms(high)})`;
  return difference === undefined ? [] : [cell(difference.p50), cell(difference.p99)];
}

function ms(value = Number.NaN): string {
  return value.toFixed(1);
}

async function createDatabase(): Promise<string> {
  server ??= startPostgres();
  return (await server).createDatabase();
}

/** @throws {Error} for a name that no case has */
function caseOf(name: string): Case {
  const found = cases.find((one) => one.name === name);
  if (found === undefined)
    throw new Error(`there is no case ${name}; there are ${cases.map((one) => one.name).join(', ')}`);
  return found;
}
