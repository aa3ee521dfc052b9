import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { BenchClient } from '../support/client.ts';
import { median } from '../support/paired-rounds.ts';
import { ServerProcess } from '../support/server-process.ts';
import { onlineInstance, type StoredInstances, storeInstances } from './stored-instances.ts';

/** The cost of a server that has `instances` ONLINE. */
export interface PollCost {
  /** Share of a core, from 0 to 1, without requests. */
  idleShare: number;
  /** CPU of one poll, including the server's background work. */
  pollUs: number;
  pollP99Ms: number;
  longestStallMs: number;
  /** `GET /v1/instances`, until its last byte. */
  listMs: number;
  /** Of the first {@link COLD_LISTS} lists, and of the later ones. */
  coldListCpuMs: number;
  listCpuMs: number;
  listBytes: number;
  /** After each instance was read once. */
  rssMb: number;
}

interface Options {
  instances?: number;
  pollsPerSecond?: number;
  /** Duration of each phase. */
  seconds?: number;
  /** Number of lists after the cold ones. */
  lists?: number;
}

const CONFIG = `rate_limits: false
log_level: warn
`;
const COLD_LISTS = 5;
/** Interval between batches of polls. */
const SLICE_MS = 10;

export async function measurePolls(
  toDatabase: () => string | Promise<string>,
  { instances = 5_000, pollsPerSecond = 500, seconds = 15, lists = 15 }: Options = {},
): Promise<PollCost> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-polls-'));
  const configFile = join(folder, 'berth.yaml');
  writeFileSync(configFile, CONFIG);
  const stored = await storeInstances(await toDatabase(), instances, onlineInstance);
  const server = await ServerProcess.start(new URL('./orchestrator-server.ts', import.meta.url), [
    stored.database,
    configFile,
  ]);
  const client = new BenchClient({ port: server.port, apiKey: stored.apiKey, connections: 64 });
  const read: Read = async (path) => (await client.read(`/v1/instances${path}`)).length;
  try {
    await pause(2_000);
    const idleShare = await cpuShare(server, () => pause(seconds * 1000));
    await readEach(stored, read);
    await server.watchStalls();
    await server.usage();
    const polls = await poll(server, stored, read, { pollsPerSecond, seconds });
    const listed = await measureLists(server, read, lists);
    return { idleShare, ...polls, ...listed, rssMb: (await server.collectGarbage()).rssBytes / 1e6 };
  } finally {
    client.close();
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function cpuShare(server: ServerProcess, body: () => Promise<void>): Promise<number> {
  const before = await server.usage();
  const begunAt = performance.now();
  await body();
  return ((await server.usage()).cpuUs - before.cpuUs) / 1000 / (performance.now() - begunAt);
}

/** Returns the length of the reply. */
type Read = (path: string) => Promise<number>;

async function readEach({ ids }: StoredInstances, read: Read): Promise<void> {
  const left = [...ids];
  const take = async () => {
    for (let id = left.pop(); id !== undefined; id = left.pop()) await read(`/${id}`);
  };
  await Promise.all(Array.from({ length: 32 }, take));
}

async function poll(
  server: ServerProcess,
  { ids }: StoredInstances,
  read: Read,
  { pollsPerSecond, seconds }: { pollsPerSecond: number; seconds: number },
): Promise<Pick<PollCost, 'pollUs' | 'pollP99Ms' | 'longestStallMs'>> {
  const before = await server.usage();
  const latencies: number[] = [];
  const timed = async (path: string): Promise<void> => {
    const sentAt = performance.now();
    await read(path);
    latencies.push(performance.now() - sentAt);
  };
  const under: Promise<void>[] = [];
  const begunAt = performance.now();
  let sent = 0;
  while (performance.now() - begunAt < seconds * 1000) {
    const due = Math.floor(((performance.now() - begunAt) * pollsPerSecond) / 1000);
    for (; sent < due; sent++) under.push(timed(`/${ids[sent % ids.length]}`));
    await pause(SLICE_MS);
  }
  await Promise.all(under);
  const { cpuUs, longestStallMs } = await server.usage();
  const sorted = latencies.sort((a, b) => a - b);
  return {
    pollUs: (cpuUs - before.cpuUs) / sent,
    pollP99Ms: sorted[Math.floor(sorted.length * 0.99)] ?? Number.NaN,
    longestStallMs,
  };
}

async function measureLists(
  server: ServerProcess,
  read: Read,
  lists: number,
): Promise<Pick<PollCost, 'listMs' | 'coldListCpuMs' | 'listCpuMs' | 'listBytes'>> {
  const tookMs: number[] = [];
  let listBytes = 0;
  const cpuMsOf = async (count: number): Promise<number> => {
    const before = await server.usage();
    for (let list = 0; list < count; list++) {
      const begunAt = performance.now();
      listBytes = await read('');
      tookMs.push(performance.now() - begunAt);
    }
    return ((await server.usage()).cpuUs - before.cpuUs) / 1000 / count;
  };
  const coldListCpuMs = await cpuMsOf(COLD_LISTS);
  const listCpuMs = await cpuMsOf(lists);
  return { listMs: median(tookMs), coldListCpuMs, listCpuMs, listBytes };
}
