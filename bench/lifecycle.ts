import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { printLine, printTable } from '../src/runtime/print.ts';
import { type PostgresServer, startPostgres } from '../test/support/databases/postgres.ts';
import type { Round } from './lifecycle/calls.ts';
import { type Difference, differences, type Estimate, latencies, tooLong } from './lifecycle/compare.ts';
import { startMarket } from './lifecycle/market.ts';

/**
 * Measures how long calls that change something at a provider take, with a provider that answers at once. With
 * `--against CHECKOUT`, the servers of that checkout are measured in turns with these; it fails if a call is slower
 * here by more than its limit.
 */
const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    against: { type: 'string' },
    /** `sqlite-1`, `postgres-1`, `postgres-4`, separated by commas. */
    only: { type: 'string' },
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
const rounds = values.quick ? 60 : 300;
const WARM_UP = 10;
const MAX_DEPLOYMENTS = 100;

const wanted = values.only === undefined ? cases : values.only.split(',').map(caseOf);
let server: Promise<PostgresServer> | undefined;
// Exiting normally also ends the servers.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
const failures: string[] = [];
try {
  for (const one of wanted) await measure(one);
} finally {
  await (await server)?.[Symbol.asyncDispose]();
}
for (const line of failures) printLine(`TOO LONG: ${line}`);
process.exitCode = failures.length === 0 ? 0 : 1;

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
  const taken: Taken = { here: [], there: [] };
  const both = [async () => taken.here.push(await own.calls.round())];
  if (other !== undefined) both.push(async () => taken.there.push(await other.calls.round()));
  // Each checkout is the first of a pair as often as the second.
  const take = async (count: number): Promise<void> => {
    for (let number = 0; number < count; number++)
      for (const round of number % 2 === 0 ? both : both.toReversed()) await round();
  };
  await take(WARM_UP);
  taken.here.length = 0;
  taken.there.length = 0;
  await take(rounds);
  // If a call is too slow, measures as many rounds again. Only a call that is too slow over all rounds counts.
  if (tooLongIn(one, taken).length > 0) await take(rounds);
  report(one, taken);
}

interface Taken {
  here: Round[];
  there: Round[];
}

function tooLongIn({ mayTakeLongerMs }: Case, taken: Taken): string[] {
  return taken.there.length === 0 ? [] : tooLong(taken, mayTakeLongerMs);
}

function report(one: Case, taken: Taken): void {
  const { name, servers } = one;
  const { here: own, there: others } = taken;
  const isCompared = others.length > 0;
  const found = {
    own: latencies(own),
    ...(isCompared && { other: latencies(others), differences: differences(own, others) }),
  };
  failures.push(...tooLongIn(one, taken).map((line) => `${name}, ${line}`));
  printLine('');
  printLine(
    `${name}: ${own.length} rounds, each request to the next of ${servers} servers; milliseconds, with 99 % intervals`,
  );
  const head = ['call', 'p50', 'p99'];
  const compared = ['other p50', 'other p99', 'p50 longer by', 'p99 longer by'];
  printTable(
    isCompared ? [...head, ...compared] : head,
    found.own.map(({ call, p50, p99 }, index) => [
      ...[call, ms(p50), ms(p99)],
      ...(isCompared ? [ms(found.other?.[index]?.p50), ms(found.other?.[index]?.p99)] : []),
      ...toCells(found.differences?.[index]),
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

/** @throws {Error} for an unknown name */
function caseOf(name: string): Case {
  const found = cases.find((one) => one.name === name);
  if (found === undefined)
    throw new Error(`there is no case ${name}; there are ${cases.map((one) => one.name).join(', ')}`);
  return found;
}
