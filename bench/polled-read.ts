import { hash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { parse as parseYaml } from 'yaml';
import { printLine, printTable } from '../src/runtime/print.ts';
import { startPostgres } from '../test/support/databases/postgres.ts';
import type { RecordedReplies } from './orchestrator/node-server.ts';
import { type StoredInstances, storeInstances, storeTombstones } from './orchestrator/stored-instances.ts';
import { fetchReply, toRequest } from './support/load.ts';
import { type Candidate, type Measured, measureRounds, median, warmUp } from './support/paired-rounds.ts';
import { ServerProcess } from './support/server-process.ts';

const CONNECTIONS = 16;
/** Enough requests to compile all code of a poll. PostgreSQL needs more than SQLite. */
const WARM_UP_REQUESTS = 60_000;
const AIMS = { toNode: 1.15, toFew: 1.1 };
const FEW = 100;

const NODE = 'node:http, the same bytes';
const BERTH = 'Berth';
const BERTH_MANY = 'Berth, many rows';
const BERTH_POSTGRES = 'Berth, on PostgreSQL';
const NOT_MODIFIED = 'Berth, 304';
const THROUGH_HONO = 'Berth, through Hono';
const ON_PLATFORM = 'Berth, on the platform of --platform';

const RATE_LIMITS = {
  rate_limits: false,
  log_level: 'warn',
};

interface Options {
  rounds: number;
  requests: number;
  /** Polled instances, in a database of `rows`. The others are tombstones. */
  many: number;
  rows: number;
  /** A berth.yaml whose platform and catalog one more server uses in place of the simulator. */
  platform: string | undefined;
}

const options = readOptions();
const folder = mkdtempSync(join(tmpdir(), 'berth-bench-'));
const servers: ServerProcess[] = [];
const postgres = await startPostgres();
try {
  report(await measure(options), options);
} finally {
  for (const server of servers) await server.stop();
  await postgres[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
}

interface Results {
  cpuUs: Measured;
  rssFewMb: number;
  rssManyMb: number;
}

async function measure({ rounds, requests, many, rows, platform }: Options): Promise<Results> {
  const stored = {
    few: await storeInstances(`sqlite:${join(folder, 'few.db')}`, FEW),
    many: await storeAmongTombstones(`sqlite:${join(folder, 'many.db')}`, many, rows - many),
    postgres: await storeInstances(await postgres.createDatabase(), FEW),
  };
  const few = await startBerth(stored.few);
  const manyServer = await startBerth(stored.many);
  const postgresServer = await startBerth(stored.postgres);
  const node = await startYardstick(few, stored.few);
  const polls = pollsOf(stored.few);
  const candidates: Candidate[] = [
    { name: NODE, server: node, requests: polls, expectedStatus: 200 },
    { name: BERTH, server: few, requests: polls, expectedStatus: 200 },
    { name: BERTH_MANY, server: manyServer, requests: pollsOf(stored.many), expectedStatus: 200 },
    { name: BERTH_POSTGRES, server: postgresServer, expectedStatus: 200, requests: pollsOf(stored.postgres) },
    { name: NOT_MODIFIED, server: few, requests: await revalidations(few, stored.few), expectedStatus: 304 },
    // A client's own X-Request-Id sends a poll through Hono, and changes nothing else.
    {
      name: THROUGH_HONO,
      server: few,
      expectedStatus: 200,
      requests: pollsOf(stored.few, { 'X-Request-Id': 'bench' }),
    },
  ];
  if (platform !== undefined) {
    const stored = await storeInstances(`sqlite:${join(folder, 'platform.db')}`, FEW);
    const server = await startBerth(stored, readPlatform(platform));
    candidates.push({ name: ON_PLATFORM, server, requests: pollsOf(stored), expectedStatus: 200 });
  }
  for (const candidate of candidates)
    await warmUp(candidate, Math.max(WARM_UP_REQUESTS, candidate.requests.length), CONNECTIONS);
  const cpuUs = await measureRounds(candidates, { rounds, requests, connections: CONNECTIONS });
  const toMb = ({ rssBytes }: { rssBytes: number }): number => Math.round(rssBytes / 1e6);
  return {
    cpuUs,
    rssFewMb: toMb(await few.collectGarbage()),
    rssManyMb: toMb(await manyServer.collectGarbage()),
  };
}

async function storeAmongTombstones(
  database: string,
  live: number,
  tombstones: number,
): Promise<StoredInstances> {
  const stored = await storeInstances(database, live);
  await storeTombstones(database, stored.ids[0] ?? '', tombstones);
  return stored;
}

async function startServer(file: string, args: readonly string[]): Promise<ServerProcess> {
  const server = await ServerProcess.start(new URL(file, import.meta.url), args);
  servers.push(server);
  return server;
}

async function startBerth({ database }: StoredInstances, platform: object = {}): Promise<ServerProcess> {
  const configFile = join(mkdtempSync(join(folder, 'server-')), 'berth.yaml');
  writeFileSync(configFile, JSON.stringify({ ...RATE_LIMITS, ...platform }));
  return startServer('./orchestrator/berth-server.ts', [database, configFile]);
}

/** Reads the platform and the catalog of a berth.yaml. */
function readPlatform(file: string): object {
  const { platform, catalog }: { platform?: unknown; catalog?: string } = parseYaml(
    readFileSync(file, 'utf8'),
  );
  return { platform, ...(catalog !== undefined && { catalog: resolve(dirname(file), catalog) }) };
}

/** Records Berth's replies, serves them with plain node:http, and checks that both are the same on the wire. */
async function startYardstick(
  berth: ServerProcess,
  { ids, apiKey }: StoredInstances,
): Promise<ServerProcess> {
  const accountId = 'acct';
  const recorded: RecordedReplies = {
    credential: { digest: hash('sha256', apiKey, 'base64'), accountId },
    replies: [],
  };
  for (const id of ids) {
    const request = toRequest(id, apiKey);
    await fetchReply(berth.port, request);
    const [head = '', body = ''] = (await fetchReply(berth.port, request)).split('\r\n\r\n');
    if (!head.startsWith('HTTP/1.1 200 ')) throw new Error(`Berth answers ${head} ${body}`);
    recorded.replies.push({ id, accountId, headers: ownHeaders(head), body });
  }
  const file = join(folder, 'replies.json');
  writeFileSync(file, JSON.stringify(recorded));
  const node = await startServer('./orchestrator/node-server.ts', [file]);
  const request = toRequest(ids[0] ?? '', apiKey);
  // The start above may have outlasted the cache of checked credentials.
  await fetchReply(berth.port, request);
  const [ours, theirs] = [await fetchReply(berth.port, request), await fetchReply(node.port, request)];
  if (withoutMoment(ours) !== withoutMoment(theirs))
    throw new Error(`the two servers do not write the same bytes:\n${ours}\n\n${theirs}`);
  return node;
}

/** The headers that the handler sets, without those of node:http. */
function ownHeaders(head: string): string[] {
  return head
    .split('\r\n')
    .slice(1)
    .map((line) => line.split(': '))
    .filter(([name = '']) => !['Date', 'Connection', 'Keep-Alive'].includes(name))
    .flat();
}

function withoutMoment(reply: string): string {
  return reply.replace(/^(Date|X-Request-Id): .*$/gim, '$1');
}

function pollsOf({ ids, apiKey }: StoredInstances, headers: Record<string, string> = {}): Buffer[] {
  return ids.map((id) => toRequest(id, apiKey, headers));
}

async function revalidations(server: ServerProcess, { ids, apiKey }: StoredInstances): Promise<Buffer[]> {
  const requests: Buffer[] = [];
  for (const id of ids) {
    const reply = await fetchReply(server.port, toRequest(id, apiKey));
    const etag = /^ETag: (.*)$/im.exec(reply)?.[1];
    if (etag === undefined) throw new Error(`no ETag in ${reply.slice(0, 300)}`);
    requests.push(toRequest(id, apiKey, { 'If-None-Match': etag }));
  }
  return requests;
}

function report(
  { cpuUs, rssFewMb, rssManyMb }: Results,
  { rounds, requests, many, rows, platform }: Options,
): void {
  const ratios = {
    berthToNode: ratio(cpuUs, BERTH, NODE),
    postgresToNode: ratio(cpuUs, BERTH_POSTGRES, NODE),
    manyToFew: ratio(cpuUs, BERTH_MANY, BERTH),
    notModifiedToBerth: ratio(cpuUs, NOT_MODIFIED, BERTH),
    honoToBerth: ratio(cpuUs, THROUGH_HONO, BERTH),
    ...(platform !== undefined && { platformToBerth: ratio(cpuUs, ON_PLATFORM, BERTH) }),
  };
  const machine = {
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    node: process.version,
    loadAverage: loadavg()[0],
  };
  printLine('');
  printLine(`${machine.cpu}, ${machine.cores} cores, Node ${machine.node}`);
  printLine(`${rounds} rounds of ${requests} requests on ${CONNECTIONS} connections; medians`);
  printLine('');
  printTable(
    ['GET /v1/instances/{id}', 'CPU µs/request', 'least', 'most'],
    Object.entries(cpuUs).map(([name, values]) => [
      name,
      ...[median(values), Math.min(...values), Math.max(...values)].map((value) => value.toFixed(1)),
    ]),
  );
  printLine('');
  printTable(
    ['ratio, paired by round', 'median', 'aim'],
    [
      ['Berth / node:http', ratios.berthToNode.toFixed(2), `≤ ${AIMS.toNode.toFixed(2)}`],
      ['Berth on PostgreSQL / node:http', ratios.postgresToNode.toFixed(2), `≤ ${AIMS.toNode.toFixed(2)}`],
      [
        `${many} instances of ${rows} rows / ${FEW}`,
        ratios.manyToFew.toFixed(2),
        `≤ ${AIMS.toFew.toFixed(2)}`,
      ],
      ['304 / 200', ratios.notModifiedToBerth.toFixed(2), ''],
      ['through Hono / direct', ratios.honoToBerth.toFixed(2), ''],
      ...(ratios.platformToBerth === undefined
        ? []
        : [['on that platform / on the simulator', ratios.platformToBerth.toFixed(2), '']]),
    ],
  );
  printLine('');
  printLine(`RSS with ${FEW} instances ${rssFewMb} MB, with ${many} instances ${rssManyMb} MB`);
  const results = { machine, rounds, requests, many, rows, aims: AIMS, ratios, cpuUs, rssFewMb, rssManyMb };
  const file = join(import.meta.dirname, 'results', 'polled-read.json');
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, `${JSON.stringify({ ...results, at: new Date().toISOString() }, null, 2)}\n`);
  printLine(`written to ${file}`);
}

function ratio(measured: Measured, name: string, to: string): number {
  return median((measured[name] ?? []).map((value, round) => value / (measured[to]?.[round] ?? Number.NaN)));
}

/** `--quick` measures less, for a busy machine. */
function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      quick: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      platform: { type: 'string' },
    },
  });
  return {
    rounds: values.rounds === undefined ? (values.quick ? 7 : 15) : Number(values.rounds),
    requests: values.quick ? 8_000 : 20_000,
    many: values.quick ? 20_000 : 100_000,
    rows: values.quick ? 100_000 : 1_000_000,
    platform: values.platform,
  };
}
