import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { printLine, printTable } from '../src/runtime/print.ts';
import { onlineInstance, storeInstances } from './orchestrator/stored-instances.ts';
import { BenchClient, CREATE_BODY, type Reply } from './support/client.ts';
import { ServerProcess } from './support/server-process.ts';

/**
 * Polls many instances every ten seconds, while ten are created and ten deleted each second, with the default rate
 * limits. No request may be refused, no read may contradict an earlier reply, and a create must be ONLINE, and a
 * deletion 404, within seconds.
 */
const POLL_EVERY_MS = 10_000;
const CREATES_A_SECOND = 10;
/** O: Polling: "observable within seconds of a change", on a platform that takes no time. */
const SHOWN_WITHIN_MS = 5_000;
const FOLLOW_EVERY_MS = 250;
/** The default limits allow one account five creates a second. */
const ACCOUNTS = 10;
const SLICE_MS = 10;
const CONNECTIONS = 64;

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    instances: { type: 'string', default: '10000' },
  },
});
const instances = Number(values.instances);
const seconds = values.quick ? 20 : 60;
const folder = mkdtempSync(join(tmpdir(), 'berth-busy-'));
const problems: string[] = [];
const pollsMs: number[] = [];
const createsMs: number[] = [];
const deletesMs: number[] = [];
const onlineMs: number[] = [];
const goneMs: number[] = [];
try {
  await measure();
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = problems.length === 0 ? 0 : 1;

interface Account {
  client: BenchClient;
  ids: string[];
}

async function measure(): Promise<void> {
  const database = `sqlite:${join(folder, 'berth.db')}`;
  const configFile = join(folder, 'berth.yaml');
  writeFileSync(configFile, 'log: { level: warn }\n');
  const stored = [];
  for (let number = 0; number < ACCOUNTS; number++)
    stored.push(
      await storeInstances(database, Math.ceil(instances / ACCOUNTS), onlineInstance, `account-${number}`),
    );
  const server = await ServerProcess.start(
    new URL('./orchestrator/orchestrator-server.ts', import.meta.url),
    [database, configFile],
  );
  const { port } = server;
  const accounts = stored.map(({ apiKey, ids }): Account => {
    const connections = Math.ceil(CONNECTIONS / ACCOUNTS);
    return { client: new BenchClient({ port, apiKey, connections }), ids };
  });
  try {
    await pollAll(accounts, POLL_EVERY_MS);
    pollsMs.length = 0;
    await server.watchStalls();
    const before = await server.usage();
    const begunAt = performance.now();
    await Promise.all([pollAll(accounts, seconds * 1000), liveAll(accounts, seconds * 1000)]);
    const after = await server.usage();
    const share = (after.cpuUs - before.cpuUs) / 1000 / (performance.now() - begunAt);
    report({ share, longestStallMs: after.longestStallMs });
  } finally {
    for (const { client } of accounts) client.close();
    await server.stop();
  }
}

/** Polls each instance of each account in turn, every ten seconds. */
async function pollAll(accounts: readonly Account[], forMs: number): Promise<void> {
  const polled = accounts.flatMap(({ client, ids }) => ids.map((id) => ({ client, id })));
  const perMs = polled.length / POLL_EVERY_MS;
  await atRate(perMs, forMs, async (number) => {
    const { client, id } = polled[number % polled.length] as (typeof polled)[number];
    const reply = await client.send('GET', `/v1/instances/${id}`);
    pollsMs.push(reply.tookMs);
    if (reply.status !== 200) problems.push(`a poll is ${reply.status}: ${reply.text.slice(0, 200)}`);
    else if (statusOf(reply) !== 'ONLINE') problems.push(`${id} reads ${statusOf(reply)}, and nobody asked`);
  });
}

/** Creates instances at a fixed rate, and deletes each as soon as it is ONLINE. */
async function liveAll(accounts: readonly Account[], forMs: number): Promise<void> {
  await atRate(CREATES_A_SECOND / 1000, forMs, async (number) => {
    const { client } = accounts[number % accounts.length] as Account;
    const created = await client.send('POST', '/v1/instances', CREATE_BODY);
    createsMs.push(created.tookMs);
    if (created.status !== 201)
      return void problems.push(`a create is ${created.status}: ${created.text.slice(0, 200)}`);
    const { id } = JSON.parse(created.text) as { id: string };
    const path = `/v1/instances/${id}`;
    const read = async () => {
      const reply = await client.send('GET', path);
      return reply.status === 404 ? '404' : reply.status === 200 ? statusOf(reply) : String(reply.status);
    };
    onlineMs.push(await follow(id, read, ['PROVISIONING'], 'ONLINE'));
    const deleted = await client.send('DELETE', path);
    deletesMs.push(deleted.tookMs);
    if (deleted.status >= 300)
      problems.push(`a deletion is ${deleted.status}: ${deleted.text.slice(0, 200)}`);
    const known = problems.length;
    goneMs.push(await follow(id, read, ['DESTROYING'], '404'));
    if (problems.length === known && (await read()) !== '404')
      problems.push(`${id} was gone and is there again`);
  });
}

/** Reads until the expected status; only allowed statuses may come before it. Returns how long that took. */
async function follow(
  id: string,
  read: () => Promise<string>,
  before: readonly string[],
  wanted: string,
): Promise<number> {
  const begunAt = performance.now();
  for (;;) {
    const askedAfterMs = performance.now() - begunAt;
    const found = await read();
    const tookMs = performance.now() - begunAt;
    if (found === wanted) return tookMs;
    if (!before.includes(found)) problems.push(`${id} reads ${found} on its way to ${wanted}`);
    else if (askedAfterMs > SHOWN_WITHIN_MS)
      problems.push(`${id} reads ${found} ${Math.round(askedAfterMs)} ms after what it was asked`);
    else {
      await pause(FOLLOW_EVERY_MS);
      continue;
    }
    return tookMs;
  }
}

/** Starts calls at this rate, independent of whether earlier ones have ended, and waits for all of them. */
async function atRate(perMs: number, forMs: number, call: (number: number) => Promise<void>): Promise<void> {
  const running = new Set<Promise<void>>();
  const begunAt = performance.now();
  let begun = 0;
  for (let passed = 0; passed < forMs; passed = performance.now() - begunAt) {
    for (; begun < passed * perMs; begun++) {
      const one = call(begun).finally(() => running.delete(one));
      running.add(one);
    }
    await pause(SLICE_MS);
  }
  await Promise.all(running);
}

function statusOf({ text }: Reply): string {
  return (JSON.parse(text) as { status: string }).status;
}

function report({ share, longestStallMs }: { share: number; longestStallMs: number }): void {
  printLine(
    `${instances} instances, each polled every ${POLL_EVERY_MS / 1000} s, and ${CREATES_A_SECOND} creates and deletes a second, for ${seconds} s`,
  );
  const row = (name: string, all: readonly number[]) => {
    const sorted = all.toSorted((a, b) => a - b);
    const at = (part: number) =>
      (sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN).toFixed(1);
    return [name, String(all.length), at(0.5), at(0.99), at(1)];
  };
  printTable(
    ['', 'count', 'median ms', 'p99 ms', 'most ms'],
    [
      row('polls', pollsMs),
      row('creates', createsMs),
      row('deletions', deletesMs),
      row('from the 201 to ONLINE', onlineMs),
      row('from the deletion to 404', goneMs),
    ],
  );
  printLine(
    `the server took ${(100 * share).toFixed(1)} % of a core; its longest stall was ${longestStallMs.toFixed(0)} ms`,
  );
  const more = problems.length > 10 ? [`and ${problems.length - 10} more`] : [];
  for (const problem of [...problems.slice(0, 10), ...more]) printLine(`PROBLEM: ${problem}`);
  if (problems.length === 0) printLine('nothing was refused, and no reading was older than it may be');
}
