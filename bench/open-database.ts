import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { printTable } from '../src/runtime/print.ts';
import { storeInstances, storeTombstones } from './stored-instances.ts';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));
/** Ticks of `/proc/PID/stat`, a second. */
const TICKS = 100;

/** What one start of a real server process costs until it has answered its first request. */
interface OpenCost {
  /** User and system time of the process. */
  cpuMs: number;
  wallMs: number;
  rssBytes: number;
}

interface TombstoneFile {
  /** As `--database` names it. */
  database: string;
  apiKey: string;
  bytes: number;
}

/** Makes a database in `folder` with one instance that exists and `count` tombstones. */
export async function makeTombstones(folder: string, count: number): Promise<TombstoneFile> {
  const file = join(folder, `tombstones-${count}.db`);
  const database = `sqlite:${file}`;
  const { apiKey, ids } = await storeInstances(database, 1);
  await storeTombstones(database, ids[0] ?? '', count);
  return { database, apiKey, bytes: statSync(file).size };
}

/**
 * Starts `berth serve` on the database, reads its first 200, and stops it: with SIGTERM, or, where `isKilled`, with
 * SIGKILL, so that the next start follows an unclean stop.
 */
export async function measureOpen(
  { database, apiKey }: Pick<TombstoneFile, 'database' | 'apiKey'>,
  { isKilled = false }: { isKilled?: boolean } = {},
): Promise<OpenCost> {
  const folder = mkdtempSync(join(tmpdir(), 'berth-open-'));
  const config = join(folder, 'berth.yaml');
  writeFileSync(config, 'log: { level: warn }\n');
  const begunAt = performance.now();
  const args = [MAIN, 'serve', '--json', '--port', '0', '--config', config, '--database', database];
  const server = spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] });
  const exit = once(server, 'exit');
  try {
    const lines = createInterface({ input: server.stdout });
    const [line] = (await Promise.race([once(lines, 'line'), exit.then(() => ['{}'])])) as [string];
    const { base_url: baseUrl } = JSON.parse(line) as { base_url?: string };
    if (baseUrl === undefined) throw new Error('the server ended before it served');
    const reply = await fetch(`${baseUrl}/instances`, { headers: { Authorization: `Bearer ${apiKey}` } });
    await reply.arrayBuffer();
    if (reply.status !== 200) throw new Error(`the first reply is ${reply.status}`);
    return { wallMs: performance.now() - begunAt, ...usageOf(server.pid ?? 0) };
  } finally {
    server.kill(isKilled ? 'SIGKILL' : 'SIGTERM');
    await exit;
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Of another process, as Linux tells it. */
function usageOf(pid: number): Pick<OpenCost, 'cpuMs' | 'rssBytes'> {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  const rss = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return {
    cpuMs: ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS,
    rssBytes: Number(rss) * 1024,
  };
}

if (import.meta.main) {
  const counts = process.argv.slice(2).map(Number);
  const folder = mkdtempSync(join(tmpdir(), 'berth-tombstones-'));
  const rows: string[][] = [];
  try {
    for (const count of counts.length > 0 ? counts : [10_000, 100_000, 1_000_000]) {
      const made = await makeTombstones(folder, count);
      const starts = {
        restored: await measureOpen(made),
        clean: await measureOpen(made, { isKilled: true }),
      };
      const killed = await measureOpen(made);
      for (const [name, cost] of Object.entries({ ...starts, killed }))
        rows.push([
          String(count),
          name,
          (cost.cpuMs / 1000).toFixed(2),
          (cost.wallMs / 1000).toFixed(2),
          (cost.rssBytes / 1e6).toFixed(0),
          (made.bytes / 1e6).toFixed(0),
        ]);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  printTable(['tombstones', 'start after', 'CPU s', 'wall s', 'RSS MB', 'file MB'], rows);
}
